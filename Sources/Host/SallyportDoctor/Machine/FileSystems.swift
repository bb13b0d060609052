import CCommand

/// File systems that affect what a store is for.
///
/// By their types in statfs(2).
enum FileSystemKind: UInt32 {
  case tmpfs = 0x0102_1994
  case ramfs = 0x8584_58f6
  case zfs = 0x2fc1_2fc1
  case bcachefs = 0xca45_1a4e
  case nilfs2 = 0x3434
  case f2fs = 0xf2f5_2010
  case nfs = 0x6969
  case cifs = 0xff53_4d42
  case smb2 = 0xfe53_4d42
  case fuse = 0x6573_5546
  case ninep = 0x0102_1997

  var name: String { self == .ninep ? "9p" : "\(self)" }

  /// What it does to a store, and what to do about it.
  var problem: (reason: String, advice: String) {
    switch self {
    case .tmpfs, .ramfs:
      ("all enrollments are lost at the next boot", "put the store on a disk")
    case .zfs, .bcachefs, .nilfs2, .f2fs:
      (
        "it writes to new blocks, so on a full disk nobody can log in",
        "reserve space for it, such as a quota of its own"
      )
    case .nfs, .cifs, .smb2, .ninep, .fuse:
      (
        "each machine accepts the same code once, and nobody gets in while it does not answer",
        "put the store on a disk of this machine"
      )
    }
  }
}

struct DiskFacts: Equatable {
  /// The type in statfs(2).
  var type: UInt32 = 0xef53
  var isReadOnly = false
  var blocks: UInt64 = 1_000_000
  var freeBlocks: UInt64 = 500_000
  /// 0 if the file system has no fixed number of files.
  var files: UInt64 = 1_000_000
  var freeFiles: UInt64 = 500_000
}

extension DiskFacts {
  /// Free space is what users other than root may use too.
  init(_ found: statfs) {
    self.init(
      type: UInt32(truncatingIfNeeded: found.f_type), isReadOnly: found.f_flags & 1 != 0,
      blocks: UInt64(found.f_blocks), freeBlocks: UInt64(found.f_bavail),
      files: UInt64(found.f_files), freeFiles: UInt64(found.f_ffree))
  }
}

extension DiskFacts {
  /// Copies on write, unless a file is set otherwise, as those of the store are.
  static let btrfs: UInt32 = 0x9123_683e

  var kind: FileSystemKind? { FileSystemKind(rawValue: type) }
}
