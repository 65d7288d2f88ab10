"""What programs over screens are made of, and how they are found."""
