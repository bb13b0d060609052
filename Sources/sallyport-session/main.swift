import SallyportSession

// The connection, from whoever started us: sallyportd, or systemd with Accept=yes.
Session.serve(3)
