extension Act {
  /// The type of its record in the kernel's audit log, by libaudit's numbers, used as shadow does:
  /// USER_CHAUTHTOK for what somebody logs in with, USER_MGMT for who is asked and how, USYS_CONFIG
  /// for what is about nobody alone.
  package var auditType: Int32 {
    guard user != nil else { return 1111 }
    switch verb {
    case .require, .exempt, .block, .unblock, .level, .unlock, .forget: return 1102
    case .enroll, .unenroll, .add, .remove, .rename, .resync, .pass, .restore, .revoke,
      .backupCodes, .adopt, .import, .prepare, .newMachine, .empty, .pamEnable, .pamDisable,
      .pamConfirm, .pamRevert, .configEdit, .configInstall, .fleetJoin, .fleetLeave, .fleetPush,
      .fleetTake, .fleetFetch, .tokenAssign, .tokenUnassign, .tokenForget:
      return 1108
    }
  }
}
