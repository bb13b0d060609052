import SallyportSession

// The connection, from our parent: sallyportd.
Session.serve(3)
