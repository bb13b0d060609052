enum PlaceholderOneTimePassword {}
