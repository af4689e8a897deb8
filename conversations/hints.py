"""Waking a worker. A hint may be lost: the row stays, and the sweeper finds it."""

import logging
from uuid import UUID

from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)


def hint_answer(turn_id: UUID) -> None:
    """Say that a turn waits for an answer."""
    from conversations.tasks import answer_turn  # tasks import the services that hint

    try:
        answer_turn.delay(str(turn_id))
    except (OperationalError, RedisError, OSError):
        logger.warning("no broker to wake a worker for turn %s; the sweeper will find it", turn_id)


def hint_import(job_id: UUID) -> None:
    """Say that an import waits."""
    from conversations.tasks import run_import

    try:
        run_import.delay(str(job_id))
    except (OperationalError, RedisError, OSError):
        logger.warning("no broker to wake a worker for import %s; the sweeper will find it", job_id)


def hint_index(node_id: UUID) -> None:
    """Say that a node is new to recall."""
    from memory.tasks import index_nodes

    try:
        index_nodes.delay([str(node_id)])
    except (OperationalError, RedisError, OSError):
        logger.warning("no broker to have node %s indexed; the sweeper will find it", node_id)


def hint_themes(run_id: UUID) -> None:
    """Say that a look for themes waits."""
    from conversations.tasks import look_for_themes

    try:
        look_for_themes.delay(str(run_id))
    except (OperationalError, RedisError, OSError):
        logger.warning("no broker to wake a worker for themes %s; the sweeper will find it", run_id)


def hint_letter(digest_id: UUID) -> None:
    """Say that a letter waits."""
    from conversations.tasks import deliver_letter

    try:
        deliver_letter.delay(str(digest_id))
    except (OperationalError, RedisError, OSError):
        logger.warning("no broker to wake a worker for letter %s; the sweeper will find it", digest_id)
