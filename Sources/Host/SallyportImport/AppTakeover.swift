import OneTimePassword
import SallyportCore

// Converts what otpauth URIs and exports of apps say.

extension AppExport {
  /// Each entry with its number in the file, counted from 1.
  package func candidates(for user: [UInt8]) -> [(number: Int, candidate: Candidate)] {
    entries.map { ($0.number, $0.candidate(for: user)) }
  }
}

extension URIList {
  /// What one user's lines say, numbered from 1: an entry is a line, or each one in a picture of
  /// Google Authenticator. Where a picture of a set is missing, an obstacle is last.
  package func candidates(for user: [UInt8]) -> [(number: Int, candidate: Candidate)] {
    var candidates: [Candidate] = []
    var exports: [GoogleExport] = []
    for line in lines {
      switch line.export {
      case .success(let export):
        exports.append(export)
        for entry in export.entries {
          let numbered = AppEntry(
            number: candidates.count + 1, name: entry.name, content: entry.content)
          candidates.append(numbered.candidate(for: user))
        }
      case .failure(let problem):
        let fault = Obstacle.line(LineProblem(line.number, problem))
        candidates.append(Candidate(user: user, line: line.number, obstacle: fault))
      case nil: candidates.append(line.candidate(for: user))
      }
    }
    if let (parts, all) = GoogleExport.missing(exports) {
      candidates.append(Candidate(user: user, obstacle: .missing(parts, of: all)))
    }
    return candidates.enumerated().map { ($0 + 1, $1) }
  }
}

extension URIListLine {
  package func candidate(for user: [UInt8]) -> Candidate {
    var candidate = Candidate(user: user, line: number)
    switch uri {
    case .success(let uri): candidate.authenticator = uri.authenticator(&candidate.remarks)
    case .failure(let problem): candidate.obstacle = .line(LineProblem(number, problem))
    }
    return candidate
  }
}

extension AppEntry {
  fileprivate func candidate(for user: [UInt8]) -> Candidate {
    var candidate = Candidate(user: user)
    switch content {
    case .success(let uri):
      candidate.authenticator = uri.authenticator(&candidate.remarks)
      candidate.authenticator?.name = name
      candidate.authenticator?.entry = number
    case .failure(let problem) where problem.isOfOtherKind:
      candidate.remarks.append(.skipped(number, problem))
    case .failure(let problem): candidate.obstacle = .entry(number, problem)
    }
    return candidate
  }
}
