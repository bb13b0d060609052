import SallyportSession

// The connection, from whoever started us: sallyportd.
Session.serve(3)
