"""Recall: what a person's memory holds on a question, found by words, meaning, thread, speaker and time."""

from memory.retrieval.recalling import CONFIDENT, Hit, Neighbour, recall

__all__ = ["CONFIDENT", "Hit", "Neighbour", "recall"]
