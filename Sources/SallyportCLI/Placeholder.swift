enum PlaceholderSallyportCLI {}
