import Glibc

/// Writes a line to the log of logins.
func tellSystemLog(_ priority: Int32, _ text: String) {
  // SAFETY: the C strings and the list live for the calls.
  unsafe withVaList([]) { none in
    unsafe openlog("sallyport", 0, LOG_AUTHPRIV)
    unsafe vsyslog(priority, text.replacing("%", with: "%%"), none)
    closelog()
  }
}
