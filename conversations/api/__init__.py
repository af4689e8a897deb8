"""The REST API of sessions, turns, imports, tokens and the export. Somebody else's object is 404."""
