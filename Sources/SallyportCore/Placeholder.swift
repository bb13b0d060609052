enum PlaceholderSallyportCore {}
