enum PlaceholderSallyportSystem {}
