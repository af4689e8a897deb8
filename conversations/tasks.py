"""Jobs of the conversations app: interfaces to services, by id, safe to run twice."""

import logging
import threading
from typing import Any
from uuid import UUID

from celery import shared_task
from celery.signals import worker_ready, worker_shutting_down

import safety.services
from conversations import cycle, importing, services
from conversations.letters import sending
from conversations.llm import ModelSettingError, describe
from conversations.themes import runs
from memory.engram.awareness import Happening, note_change
from neuron_site.celery import ANSWERS

logger = logging.getLogger(__name__)


@worker_shutting_down.connect
def interrupt_answers(**_: Any) -> None:
    """Threads cannot be killed, so a worker that is told to go would wait for the model's whole answer."""
    cycle.shutting_down.set()


@worker_ready.connect
def get_ready_to_answer(sender: Any, **_: Any) -> None:
    if ANSWERS in sender.app.amqp.queues.consume_from:
        threading.Thread(target=_load_what_answers_take, name="warm-up", daemon=True).start()


def _load_what_answers_take() -> None:
    """The model's library, the embedder and the detector: else the first answer would wait for them."""
    from conversations.llm.exchange import warm_up

    warm_up()
    safety.services.warm_up()


@worker_ready.connect
def note_model(**_: Any) -> None:
    """The model is a setting, so it changes with a start."""
    try:
        note_change("model", describe().name, Happening.MODEL_CHANGED)
    except ModelSettingError:
        logger.warning("no model can be named: NEURON_MODEL makes no sense")


@shared_task(ignore_result=True)
def answer_turn(turn_id: str) -> None:
    cycle.answer(UUID(turn_id))


@shared_task(ignore_result=True)
def sweep_turns() -> None:
    services.sweep_turns()


@shared_task(ignore_result=True)
def run_import(job_id: str) -> None:
    importing.run(UUID(job_id))


@shared_task(ignore_result=True)
def sweep_imports() -> None:
    importing.sweep()


@shared_task(ignore_result=True)
def look_for_themes(run_id: str) -> None:
    runs.work(UUID(run_id), stopping=cycle.shutting_down)


@shared_task(ignore_result=True)
def sweep_themes() -> None:
    runs.sweep()


@shared_task(ignore_result=True)
def deliver_letter(digest_id: str) -> None:
    sending.deliver(UUID(digest_id))


@shared_task(ignore_result=True)
def ask_address(owner_id: int) -> None:
    sending.send_confirmation(owner_id)


@shared_task(ignore_result=True)
def sweep_letters() -> None:
    sending.sweep()
