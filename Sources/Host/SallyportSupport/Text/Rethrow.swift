/// Runs `step`, and rethrows its error as one of the caller's.
package func rethrow<Value: ~Copyable, Fault: Error, Other: Error>(
  _ step: () throws(Fault) -> Value, as change: (Fault) -> Other
) throws(Other) -> Value {
  do throws(Fault) { return try step() } catch { throw change(error) }
}
