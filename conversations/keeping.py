"""Writes of what a person asked to have kept: out of a turn, by their own hand, corrected, pinned, forgotten."""

from zoneinfo import ZoneInfo

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

import memory.services
from conversations import intents
from conversations.hints import hint_index
from conversations.models import Attempt, Profile, Turn
from memory import knowledge
from memory.models import MemoryNode


class NothingToKeep(Exception):
    """Words that cannot be kept; the sentence says why."""


def keep_what_was_asked(*, turn: Turn) -> None:
    """Keep what the turn's message asks to have remembered, whatever becomes of its answer.

    Inside the transaction that settles the turn, behind its node, and only the first time: what the person has
    forgotten since must not come back with another answer. Said in a temporary session it is not kept.
    """
    fact = intents.asked_to_keep(turn.q)
    if not fact or turn.session.temporary:
        return
    if not turn.attempts.exclude(number=turn.attempt).exists():
        _keep(turn=turn, words=fact[: knowledge.LONGEST_FACT])


def keep_turn(*, turn: Turn) -> MemoryNode:
    """Keep what the person said in a turn. Raises NothingToKeep."""
    if turn.session.temporary:
        raise NothingToKeep("This conversation is kept out of memory, so nothing of it is kept.")
    words = intents.asked_to_keep(turn.q) or turn.q
    if len(words) > knowledge.LONGEST_FACT:
        raise NothingToKeep(
            f"This is longer than {knowledge.LONGEST_FACT:,} characters. The turn is remembered as it is; "
            "write down what matters in it."
        )
    return _keep(turn=turn, words=words)


def _keep(*, turn: Turn, words: str) -> MemoryNode:
    with transaction.atomic():
        node = knowledge.keep_fact(
            owner=turn.owner,
            words=words,
            said_at=turn.created_at,
            tz=_zone(turn.owner),
            session_id=turn.session_id,
            turn_index=turn.turn_index,
        )
        transaction.on_commit(lambda: hint_index(node.pk))
    return node


def keep_words(*, owner: AbstractBaseUser, words: str) -> MemoryNode:
    """Keep what a person wrote down themselves, screened before. Raises NothingToKeep."""
    with transaction.atomic():
        node = knowledge.keep_fact(
            owner=owner, words=_checked(words), said_at=timezone.now(), tz=_zone(owner)
        )
        transaction.on_commit(lambda: hint_index(node.pk))
    return node


def correct(*, owner: AbstractBaseUser, node: MemoryNode, words: str) -> MemoryNode:
    """Let a fact say what the person now says, screened before. Raises NothingToKeep."""
    with transaction.atomic():
        node = knowledge.correct_fact(node=node, words=_checked(words), now=timezone.now(), tz=_zone(owner))
        transaction.on_commit(lambda: hint_index(node.pk))
    return node


def forget(*, owner: AbstractBaseUser, node: MemoryNode) -> None:
    """Forget a fact for good, also where answers say that they drew on it. The turn it was said in stays."""
    with transaction.atomic():
        memory.services.delete_nodes(owner=owner, node_ids=[node.pk])
        forget_in_what_was_drawn_on(owner=owner, node_id=str(node.pk))


def forget_in_what_was_drawn_on(*, owner: AbstractBaseUser, **named: object) -> None:
    """Take what is so named (`node_id`, or `session_id` and `turn_index`) out of what answers say they drew on."""
    for model, whose in ((Turn, "owner_id"), (Attempt, "turn__owner_id")):
        for row in model.objects.filter(**{whose: owner.pk}, recalled__contains=[named]):
            row.recalled = [
                one for one in row.recalled if any(one.get(name) != value for name, value in named.items())
            ]
            row.save(update_fields=["recalled"])


def _checked(words: str) -> str:
    words = words.strip()
    if not words:
        raise NothingToKeep("There is nothing in it to keep.")
    if len(words) > knowledge.LONGEST_FACT:
        raise NothingToKeep(
            f"This has {len(words):,} characters and {knowledge.LONGEST_FACT:,} are the most. Keep it in parts."
        )
    return words


def _zone(owner: AbstractBaseUser) -> ZoneInfo:
    name = Profile.objects.filter(owner_id=owner.pk).values_list("time_zone", flat=True).first()
    return ZoneInfo(name or "UTC")
