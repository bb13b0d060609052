"""What rings 3 and 4, the torture, the bench and the packages' tests share."""
