"""The letter about what moved: when it is due, what it says, and that there is one of it and never two."""
