"""Template helpers of the pages."""
