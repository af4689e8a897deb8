"""The tables that recall searches. All of it is derived from MemoryNode, and goes with its node."""

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from pgvector.django import HalfVectorField

from memory.models import MemoryNode


class Utterance(models.Model):
    """One message by one speaker: what recall scores. A turn has two, any other node one."""

    class Role(models.TextChoices):
        PERSON = "person"
        ASSISTANT = "assistant"
        SPEAKER = "speaker", "a named speaker in a chat between people"
        NOTE = "note"

    id = models.BigAutoField(primary_key=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    node = models.ForeignKey(MemoryNode, on_delete=models.CASCADE, related_name="utterances")
    role = models.CharField(max_length=10, choices=Role.choices)
    speaker = models.CharField(max_length=80, blank=True)
    node_type = models.CharField(max_length=40)
    session_id = models.UUIDField(null=True)
    position = models.PositiveIntegerField(help_text="Order in the thread; each turn's two are adjacent.")
    occurred_at = models.DateTimeField()
    length = models.PositiveIntegerField()
    chunks = models.PositiveIntegerField()
    is_question = models.BooleanField()
    has_time = models.BooleanField()
    # Packed: the keys of each chunk's terms (a hash of owner and term, see `key`), each chunk ended by a 0.
    terms = models.BinaryField()
    block = models.PositiveIntegerField(help_text="Which rows of Posting name it.")
    embedded_with = models.CharField(max_length=120, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["node", "role"], name="one_utterance_of_a_role")]
        indexes = [
            # The neighbours of a candidate, and a whole session.
            models.Index(fields=["owner", "session_id", "position"], name="utterance_thread"),
            # unembedded(), and which models an owner's utterances are embedded with.
            models.Index(fields=["owner", "embedded_with"], name="utterance_model"),
            models.Index(fields=["id"], condition=Q(embedded_with=""), name="utterance_unembedded"),
        ]

    def __str__(self) -> str:
        return f"{self.role} of {self.node_id}"


class UnitVector(models.Model):
    """The meaning of an utterance (unit 0) or of one part of it (1, 2 …), in one model's space.

    Made and deleted, never changed: the signs of what is whole are kept in blocks beside it.
    """

    id = models.BigAutoField(primary_key=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    utterance = models.ForeignKey(Utterance, on_delete=models.CASCADE, related_name="vectors", db_index=False)
    unit = models.PositiveSmallIntegerField()
    model = models.CharField(max_length=120)
    # No fixed dimensions: each model has its own.
    embedding = HalfVectorField()
    approximate = models.BooleanField(default=False, help_text="In the HNSW index: its owner has very many.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["utterance", "model", "unit"], name="one_vector_of_a_unit"),
        ]

    def __str__(self) -> str:
        return f"{self.utterance_id}/{self.unit} ({self.model})"


class OwnerTerm(models.Model):
    """A word that an owner's memory holds, and in how many chunks. Counted by the database's triggers."""

    pk = models.CompositePrimaryKey("owner_id", "key")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    key = models.BigIntegerField()
    word = models.CharField(max_length=60)
    chunks = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return self.word


class Posting(models.Model):
    """Where a word of an owner stands: the inverted index. Written by the database's triggers.

    One row for each 4,096 utterances of the owner that hold the word, so that a turn rewrites small rows however
    much its owner has said, and a search reads few. (A GIN index over the terms answered a search of 10,000 turns in
    some 80 ms, most of it spent on reading the utterances; this takes 5.)
    """

    pk = models.CompositePrimaryKey("owner_id", "key", "block")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    key = models.BigIntegerField()
    block = models.PositiveIntegerField()
    # Packed: each utterance's id (8 bytes), then the first four bytes of its session's, 0 for none.
    entries = models.BinaryField()

    def __str__(self) -> str:
        return f"{len(self.entries) // 12} utterances"


class SignBlock(models.Model):
    """The signs of 1,024 whole vectors of an owner, for a first look at them all. Written by the database's triggers.

    The Hamming distance between signs nearly orders as the angle between vectors does, at a sixteenth of the bytes.
    """

    pk = models.CompositePrimaryKey("owner_id", "model", "block")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    model = models.CharField(max_length=120)
    block = models.PositiveIntegerField()
    # Packed: each utterance's id (8 bytes), then a bit for each dimension, 1 where it is above 0.
    entries = models.BinaryField()

    def __str__(self) -> str:
        return f"block {self.block} ({self.model})"


class OwnerIndex(models.Model):
    """What recall must know of an owner before it searches. Its row is the lock of the owner's counts."""

    owner = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    chunks = models.PositiveBigIntegerField(default=0)
    utterances = models.PositiveBigIntegerField(
        default=0, help_text="Ever indexed; places the next in its block."
    )
    approximate = models.BooleanField(default=False, help_text="Too many vectors for an exact scan.")

    def __str__(self) -> str:
        return f"{self.chunks} chunks"

    @classmethod
    def hold(cls, *owner_ids: int) -> dict[int, Self]:
        """Lock these owners' rows, after any of their nodes and before anything that is derived of those."""
        held = cls.objects.filter(pk__in=owner_ids).order_by("pk").select_for_update()
        return {index.pk: index for index in held}
