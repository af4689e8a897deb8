"""Sessions, turns and their answers, imprints, a person's settings, and the imports of old chats."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from conversations.querysets import ImportJobQuerySet, SessionQuerySet, TurnQuerySet


class Imprint(models.Model):
    """The persona that answers."""

    name = models.CharField(max_length=60, unique=True)
    voice = models.CharField(
        max_length=200, blank=True, help_text="How it speaks, in a line: warm, plain, unhurried."
    )
    system_prompt = models.TextField(
        help_text="Who it is. Safety, memory and tools are added by Neuron itself."
    )
    is_default = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"], condition=Q(is_default=True), name="one_default_imprint"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Profile(models.Model):
    """A person's settings, and what the cycle must remember about their use."""

    owner = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="profile")
    time_zone = models.CharField(max_length=64, default="UTC")
    country = models.CharField(
        max_length=2, blank=True, help_text="ISO 3166 code; decides which help lines are shown."
    )
    language = models.CharField(max_length=8, default="en")
    imprint = models.ForeignKey(Imprint, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    is_minor = models.BooleanField(default=False)
    # Continued use: kept here, so that the notice does not depend on a browser.
    last_active_at = models.DateTimeField(null=True, blank=True)
    last_notice_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"settings of person {self.owner_id}"


class Mode(models.TextChoices):
    CHAT = "chat", "chat"
    AGENTIC = "agentic", "with tools"


class Session(models.Model):
    """One conversation thread of one person. A fork shows its origin's turns before `forked_at`, then its own."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="chat_sessions"
    )
    title = models.CharField(max_length=200, blank=True)
    imprint = models.ForeignKey(Imprint, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    mode = models.CharField(max_length=10, choices=Mode.choices, default=Mode.CHAT)
    source = models.CharField(
        max_length=20, default="neuron", help_text="Where it was talked: neuron, chatgpt …"
    )
    external_id = models.CharField(max_length=200, blank=True)
    next_index = models.PositiveIntegerField(default=0)
    last_turn_at = models.DateTimeField(default=timezone.now)
    pinned = models.BooleanField(default=False)
    temporary = models.BooleanField(default=False, help_text="Kept out of memory and never mirrored.")
    archived_at = models.DateTimeField(null=True, blank=True)
    forked_from = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="forks"
    )
    forked_at = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = SessionQuerySet.as_manager()

    class Meta:
        constraints = [
            # Importing a chat twice updates it.
            models.UniqueConstraint(
                fields=["owner", "source", "external_id"],
                condition=~Q(external_id=""),
                name="one_session_per_import",
            ),
        ]
        indexes = [
            # The list of sessions, newest first.
            models.Index(fields=["owner", "-last_turn_at", "-id"], name="session_recency"),
        ]

    def __str__(self) -> str:
        return self.title or "Untitled"


class Turn(models.Model):
    """One exchange: what the person said (`q`), what Neuron answered (`a`)."""

    class Status(models.TextChoices):
        PENDING = "pending"
        ANSWERING = "answering"
        COMPLETE = "complete"
        STOPPED = "stopped"
        INTERRUPTED = "interrupted"
        FAILED = "failed"
        FORGOTTEN = "forgotten"  # emptied at the person's wish; its place in the session stays

    class Action(models.TextChoices):
        PASS = "pass"  # noqa: S105
        SOFT_BELL = "soft_bell"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="turns")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="turns")
    turn_index = models.PositiveIntegerField()
    q = models.TextField()
    a = models.TextField(blank=True)
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.PENDING)
    action = models.CharField(max_length=10, choices=Action.choices, default=Action.PASS)
    help_lines = models.BooleanField(default=False, help_text="Whether help lines stand beside the answer.")
    notices = models.JSONField(default=list, blank=True, help_text="Notices owed and shown with this turn.")
    mode = models.CharField(max_length=10, choices=Mode.choices, default=Mode.CHAT)
    model = models.CharField(max_length=120, blank=True)
    client_key = models.CharField(max_length=200)
    recalled = models.JSONField(default=list, blank=True)
    error = models.CharField(max_length=60, blank=True)
    attempt = models.PositiveIntegerField(
        default=0, help_text="Which answering this is; a late worker's is ignored."
    )
    lease_until = models.DateTimeField(null=True, blank=True)
    stop_requested = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)
    answered_at = models.DateTimeField(null=True, blank=True)

    objects = TurnQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "turn_index"], name="one_turn_per_index"),
            models.UniqueConstraint(fields=["session", "client_key"], name="one_turn_per_client_key"),
        ]
        indexes = [
            # A person's latest turns over all sessions.
            models.Index(fields=["owner", "-created_at", "-id"], name="turn_recency"),
            # The sweeper: turns that are still to be settled, seldom more than a handful.
            models.Index(
                fields=["lease_until"],
                condition=Q(status__in=["pending", "answering"]),
                name="turn_unsettled",
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.turn_index} of {self.session_id}"

    @property
    def is_settled(self) -> bool:
        return self.status not in (self.Status.PENDING, self.Status.ANSWERING)


class Attempt(models.Model):
    """One answer to a turn. Another answer keeps the first; `Turn.a` is the chosen one."""

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    a = models.TextField(blank=True)
    status = models.CharField(max_length=12, choices=Turn.Status.choices)
    model = models.CharField(max_length=120, blank=True)
    recalled = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["turn", "number"], name="one_attempt_per_number"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} at {self.turn_id}"


class ImportJob(models.Model):
    """One uploaded export, worked off as a job; resumed where it stood when a worker dies."""

    class State(models.TextChoices):
        WAITING = "waiting", "waiting"
        RUNNING = "running", "running"
        DONE = "done", "done"
        FAILED = "failed", "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="imports")
    file_name = models.CharField(max_length=200)
    stored_as = models.CharField(
        max_length=200, blank=True, help_text="Name in the file storage; empty once removed."
    )
    size = models.BigIntegerField(default=0, help_text="Bytes of the file.")
    done_bytes = models.BigIntegerField(default=0)
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    error = models.CharField(max_length=300, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = ImportJobQuerySet.as_manager()

    class Meta:
        indexes = [
            # The import page: one person's imports, newest first.
            models.Index(fields=["owner", "-created_at"], name="import_recency"),
            # The sweeper: imports still to be worked off.
            models.Index(
                fields=["lease_until"],
                condition=Q(state__in=["waiting", "running"]),
                name="import_unfinished",
            ),
        ]

    def __str__(self) -> str:
        return f"import of {self.file_name}"


class ImportedChat(models.Model):
    """What became of one chat in an export: the import's report."""

    class Outcome(models.TextChoices):
        IMPORTED = "imported", "imported"
        UPDATED = "updated", "updated"
        UNCHANGED = "unchanged", "already here"
        SKIPPED = "skipped", "skipped"
        FAILED = "failed", "failed"

    job = models.ForeignKey(ImportJob, on_delete=models.CASCADE, related_name="chats")
    position = models.PositiveIntegerField(help_text="Its place in the file, from 0.")
    title = models.CharField(max_length=200, blank=True)
    outcome = models.CharField(max_length=10, choices=Outcome.choices)
    reason = models.CharField(max_length=300, blank=True)
    turns_added = models.PositiveIntegerField(default=0)
    turns_left_out = models.PositiveIntegerField(default=0)
    session = models.ForeignKey(Session, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["job", "position"], name="one_report_line_per_chat"),
        ]

    def __str__(self) -> str:
        return f"{self.title or 'untitled'}: {self.outcome}"


from conversations.letters.models import Digest, LetterPreference  # noqa: E402, F401 - so that Django finds the tables
from conversations.themes.models import ThemeNote, ThemeRun  # noqa: E402, F401
