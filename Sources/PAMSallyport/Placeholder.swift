enum PlaceholderPAMSallyport {}
