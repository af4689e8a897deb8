"""What it was all about: themes over everything a person said, how they moved, and where they were said."""
