"""The canary: proof that beat, broker and a worker are alive together."""

import logging
from typing import Any

from celery import shared_task
from celery.signals import beat_init
from kombu.exceptions import OperationalError

from neuron_site import canary

logger = logging.getLogger(__name__)


@shared_task(ignore_result=True)
def leave_canary(bearer: str = "beat") -> None:
    canary.leave(bearer)


@beat_init.connect
def ask_at_start(**_: Any) -> None:
    """The first entry of the timetable is due a quarter of a minute later; the doctor need not wait for it."""
    try:
        leave_canary.delay()
    except OperationalError:
        logger.warning("the broker does not answer yet; beat goes on")
