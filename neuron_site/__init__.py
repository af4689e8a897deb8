"""The project: settings, addresses, the bundled servers and the commands that start them."""
