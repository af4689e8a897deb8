"""The engram: what is remembered, how it is found again and how it is mirrored."""
