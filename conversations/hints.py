"""Waking a worker. A hint may be lost: the row stays, and the sweeper finds it."""

import logging
from typing import Any
from uuid import UUID

from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)


def hint_answer(turn_id: UUID) -> None:
    """Say that a turn waits for an answer."""
    from conversations.tasks import answer_turn  # tasks import the services that hint

    _wake(answer_turn, str(turn_id), f"turn {turn_id}")


def hint_import(job_id: UUID) -> None:
    """Say that an import waits."""
    from conversations.tasks import run_import

    _wake(run_import, str(job_id), f"import {job_id}")


def hint_index(node_id: UUID) -> None:
    """Say that a node is new to recall."""
    from memory.tasks import index_nodes

    _wake(index_nodes, [str(node_id)], f"node {node_id}")


def hint_themes(run_id: UUID) -> None:
    """Say that a look for themes waits."""
    from conversations.tasks import look_for_themes

    _wake(look_for_themes, str(run_id), f"themes {run_id}")


def hint_letter(digest_id: UUID) -> None:
    """Say that a letter waits."""
    from conversations.tasks import deliver_letter

    _wake(deliver_letter, str(digest_id), f"letter {digest_id}")


def hint_confirmation(owner_id: int) -> None:
    """Say that an address is to be asked. Where the hint is lost, the page lets the person ask again."""
    from conversations.tasks import ask_address

    _wake(ask_address, owner_id, f"the address of person {owner_id}", found_by="the person can ask again")


def _wake(
    task: Any, argument: str | int | list[str], what: str, *, found_by: str = "the sweeper will find it"
) -> None:
    try:
        task.delay(argument)
    except (OperationalError, RedisError, OSError):
        logger.warning("no broker to wake a worker for %s; %s", what, found_by)
