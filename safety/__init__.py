"""Screening of messages, bells, and their review."""
