"""The local engram: remembered nodes, the edges between them, and the outbox that mirrors them."""

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from memory.columns import TransactionId
from memory.querysets import MemoryEdgeQuerySet, MemoryNodeQuerySet, MirrorJobQuerySet

UNIT_RANGE = [MinValueValidator(0.0), MaxValueValidator(1.0)]


class MemoryNode(models.Model):
    """One remembered thing of one person."""

    class NodeType(models.TextChoices):
        CONVERSATION = "Conversation"
        BELL_EVENT = "BellEvent"
        KNOWLEDGE = "Knowledge"
        THEME = "Theme"
        HISTORY = "History"
        STATE_EVENT = "StateEvent"
        ENTITY = "Entity"

    class Tier(models.TextChoices):
        EPISODIC = "Episodic"
        SEMANTIC = "Semantic"
        PROCEDURAL = "Procedural"
        WORKING = "Working"

    class Hold(models.IntegerChoices):
        """Text from elsewhere is shown to nobody and nothing before it has been screened."""

        NONE = 0, "free"
        UNSCREENED = 1, "waits for screening"
        DANGER = 2, "kept out of recall"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memory_nodes")
    # No choices on node_type: a remote engram may hold kinds of its own, which are kept as they are.
    node_type = models.CharField(max_length=40)
    tier = models.CharField(max_length=20, choices=Tier.choices, default=Tier.EPISODIC)
    label = models.CharField(max_length=200, blank=True)
    content = models.TextField()
    payload = models.JSONField(default=dict, blank=True)
    tags = ArrayField(models.CharField(max_length=80), default=list, blank=True)
    salience = models.FloatField(default=0.5, validators=UNIT_RANGE)
    importance = models.FloatField(default=0.5, validators=UNIT_RANGE)
    confidence = models.FloatField(default=1.0, validators=UNIT_RANGE)
    session_id = models.UUIDField(null=True, blank=True)
    turn_index = models.PositiveIntegerField(null=True, blank=True)
    occurred_at = models.DateTimeField(
        default=timezone.now, help_text="When it happened; recency orders by it."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now)
    version = models.PositiveIntegerField(default=1)

    # Below `version` until recall has read this state of the node.
    indexed_version = models.PositiveIntegerField(default=0, editable=False)
    # Below `version` until the edges of this state of the node are made; of turns alone.
    connected_version = models.PositiveIntegerField(default=0, editable=False)

    # Worked out here from other nodes. Another engram works it out for itself, so it is neither mirrored nor given out.
    derived = models.BooleanField(default=False, editable=False)
    hold = models.PositiveSmallIntegerField(choices=Hold.choices, default=Hold.NONE, editable=False)
    changed_in = TransactionId()

    objects = MemoryNodeQuerySet.as_manager()

    class Meta:
        constraints = [
            # The owner is part of it: nodes that come from elsewhere name sessions as they like.
            models.UniqueConstraint(
                fields=["owner", "session_id", "turn_index"],
                condition=Q(node_type="Conversation"),
                name="one_conversation_node_per_turn",
            ),
            # The rolling history is one node, overwritten.
            models.UniqueConstraint(
                fields=["owner"], condition=Q(node_type="History"), name="one_history_node_per_owner"
            ),
            models.CheckConstraint(
                condition=Q(salience__range=(0, 1), importance__range=(0, 1), confidence__range=(0, 1)),
                name="node_weights_between_0_and_1",
            ),
            models.CheckConstraint(condition=Q(version__gte=1), name="node_version_at_least_1"),
        ]
        indexes = [
            # recent_by_type(): the last N of one kind, newest first.
            models.Index(fields=["owner", "node_type", "-occurred_at", "-id"], name="node_recent_by_type"),
            # A session's nodes in thread order: neighbours, deletion of a session.
            models.Index(fields=["owner", "session_id", "turn_index"], name="node_thread"),
            # for_tag(): bells, pinned knowledge.
            GinIndex(fields=["owner", "tags"], name="node_tags"),
            # unindexed(): what recall has yet to read; empty nearly always.
            models.Index(
                fields=["created_at"],
                condition=Q(indexed_version__lt=models.F("version")),
                name="node_unindexed",
            ),
            # connect_pending(): turns whose edges are yet to be made.
            models.Index(
                fields=["created_at"],
                condition=Q(node_type="Conversation", connected_version__lt=models.F("version")),
                name="node_unconnected",
            ),
            # held(): what came in and waits for screening; empty nearly always.
            models.Index(fields=["created_at"], condition=Q(hold=1), name="node_unscreened"),
            # GET /api/sync: what changed since; and the first sync, a page of ids at a time.
            models.Index(fields=["owner", "changed_in"], name="node_changed"),
            models.Index(fields=["owner", "id"], name="node_of_owner"),
        ]

    def __str__(self) -> str:
        return f"{self.node_type} {self.label or self.id}"


class MemoryEdge(models.Model):
    """A directed connection between two nodes of the same person."""

    class Kind(models.TextChoices):
        FOLLOWS = "follows"
        MENTIONS = "mentions"
        SUPPORTS = "supports"
        SUMMARISES = "summarises"
        SAME_TOPIC = "same_topic"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memory_edges")
    source = models.ForeignKey(MemoryNode, on_delete=models.CASCADE, related_name="edges_out")
    target = models.ForeignKey(MemoryNode, on_delete=models.CASCADE, related_name="edges_in")
    kind = models.CharField(max_length=40)
    weight = models.FloatField(default=1.0)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now)
    version = models.PositiveIntegerField(default=1)
    # Worked out here, as a node's is.
    derived = models.BooleanField(default=False, editable=False)
    changed_in = TransactionId()

    objects = MemoryEdgeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "target", "kind"], name="one_edge_of_a_kind"),
            models.CheckConstraint(condition=~Q(source=models.F("target")), name="no_edge_to_itself"),
        ]
        indexes = [
            # Everything that hangs on an owner: export, GET /api/edges.
            models.Index(fields=["owner", "id"], name="edge_of_owner"),
            # GET /api/sync: what changed since.
            models.Index(fields=["owner", "changed_in"], name="edge_changed"),
            # Walking backwards, and the cascade of a deleted node.
            models.Index(fields=["target", "kind"], name="edge_backwards"),
        ]

    def __str__(self) -> str:
        return f"{self.source_id} {self.kind} {self.target_id}"


class MirrorJob(models.Model):
    """The outbox: one change that the remote engram has yet to hear of. Written with the change itself."""

    class Operation(models.TextChoices):
        PUT_NODE = "put_node"
        PUT_EDGE = "put_edge"
        DELETE_NODE = "delete_node"
        PUT_BELL = "put_bell"

    class State(models.TextChoices):
        WAITING = "waiting"
        SENT = "sent"
        DEAD = "dead"

    id = models.BigAutoField(primary_key=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="mirror_jobs")
    operation = models.CharField(max_length=20, choices=Operation.choices)
    # A plain id, not a foreign key: the deletion of a node outlives the node.
    subject_id = models.UUIDField()
    subject_version = models.PositiveIntegerField(default=1)
    # What keeps its order: a session's id, or the subject's own where it belongs to none.
    lane = models.UUIDField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    tries = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField(default=timezone.now, help_text="Not before; doubles as the lease.")
    # Who sends it at present, until due_at; only they may settle it.
    claim = models.UUIDField(null=True, editable=False)
    last_error = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    sent_at = models.DateTimeField(null=True, blank=True)

    objects = MirrorJobQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["operation", "subject_id", "subject_version"], name="one_job_per_node_and_version"
            ),
        ]
        indexes = [
            # due(): what may be sent now, oldest first; small, because sent rows are not in it.
            models.Index(fields=["due_at", "id"], condition=Q(state="waiting"), name="mirror_due"),
            # The order within a lane.
            models.Index(fields=["lane", "id"], condition=Q(state="waiting"), name="mirror_lane"),
            # prune(): what was sent long ago.
            models.Index(fields=["sent_at"], condition=Q(state="sent"), name="mirror_sent"),
            # What an operator looks at; empty nearly always.
            models.Index(fields=["id"], condition=Q(state="dead"), name="mirror_dead"),
        ]

    def __str__(self) -> str:
        return f"{self.operation} {self.subject_id} v{self.subject_version} ({self.state})"


class Tombstone(models.Model):
    """That a node was deleted: its id alone. Written in the transaction that deletes, read by those who sync.

    Neither a sync nor a late PUT may bring the node back at this version or an older one.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tombstones")
    node_id = models.UUIDField()
    version = models.PositiveIntegerField(default=1, help_text="The node's version when it was deleted.")
    deleted_at = models.DateTimeField(default=timezone.now)
    changed_in = TransactionId()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "node_id"], name="one_tombstone_per_node"),
        ]
        indexes = [
            # GET /api/sync: what was deleted since.
            models.Index(fields=["owner", "changed_in"], name="tombstone_changed"),
        ]

    def __str__(self) -> str:
        return f"{self.node_id} v{self.version} deleted"


class EngramSync(models.Model):
    """How far one person's memory has been brought up to date from the remote engram. Its row is the sync's lease."""

    owner = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    address = models.CharField(max_length=500, blank=True, help_text="Where the cursor is from.")
    cursor = models.TextField(blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    tried_at = models.DateTimeField(null=True, blank=True)
    synced_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=200, blank=True, help_text="Empty after a sync that went well.")
    boot = models.CharField(
        max_length=200, blank=True, help_text="What the last boot from the remote came to."
    )
    boot_failed = models.BooleanField(default=False)
    nodes_taken = models.PositiveBigIntegerField(default=0)
    edges_taken = models.PositiveBigIntegerField(default=0)
    deletions_taken = models.PositiveBigIntegerField(default=0)

    class Meta:
        verbose_name = "sync with the remote engram"
        verbose_name_plural = "syncs with the remote engram"

    def __str__(self) -> str:
        return f"synced {self.synced_at or 'never'}"


from memory.recall_models import OwnerIndex, OwnerTerm, SignBlock, UnitVector, Utterance  # noqa: E402, F401 - so that Django finds the tables
