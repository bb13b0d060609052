import ArgumentParser
import SallyportCore
import SallyportSystem

/// `sallyport doctor`
struct Doctor: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Tell who would be locked out, and who would get in without a code.")

  @Option(
    help: ArgumentHelp(
      "Look at this PAM service; may be repeated. (default: all that name the module)",
      valueName: "name"))
  var service: [String] = []

  @OptionGroup var store: StoreOptions

  func user(in context: Context) -> String? { nil }

  func run(in context: Context) throws(Complaint) { _ = try status(in: context) }

  func status(in context: Context) throws(Complaint) -> Int32 {
    let now = try context.time()
    let opened: Store?
    do throws(Complaint) {
      opened = try context.store(store)
    } catch {
      guard case .notRoot = error else { throw error }
      opened = nil
    }
    let facts = Facts(of: context.machine, named: service, opened, at: store.path, now)
    let diagnosis = Diagnosis(
      facts, option: store.store, version: Sallyport.configuration.version)
    let voice = context.voice(store)
    let screen = context.terminal.screen(of: voice.stream)
    let report = Report(diagnosis, hasMarks: screen?.isUTF8 == true && !context.isPlain)
    voice.answer(report.json, report.text)
    return diagnosis.status
  }
}
