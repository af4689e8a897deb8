"""Sessions, turns, the layered cycle and the pages."""
