"""The remote engram: a copy of the memory on another server, mirrored to and synced from in the background."""
