"""The Celery application and its timetable. A task is a hint: every job is a row that a sweeper finds again."""

import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging, worker_init
from kombu import Exchange, Queue

from neuron_site.garbage import collect_seldom

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "neuron_site.settings")

app = Celery("neuron")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

# What a person waits for has a queue of its own, so that a worker can be kept for it: `up` runs one for each. A worker
# that is not told which takes both.
ANSWERS, BACKGROUND = "answers", "background"
app.conf.task_queues = [Queue(name, Exchange(name), routing_key=name) for name in (ANSWERS, BACKGROUND)]
app.conf.task_default_queue = BACKGROUND
app.conf.task_routes = {"conversations.tasks.answer_turn": {"queue": ANSWERS}}


@setup_logging.connect
def use_djangos_logging(**_: Any) -> None:
    """Celery would install its own root logger, which prints task arguments; Django's stays instead."""


@worker_init.connect
def use_the_webs_event_loop(**_: Any) -> None:
    """An answer makes a loop of its own; uvloop's is made, and turned, in less time than asyncio's."""
    import uvloop  # only workers make loops here; each command would pay for it

    uvloop.install()


@worker_init.connect
def collect_garbage_seldom(**_: Any) -> None:
    """As the web does."""
    collect_seldom()


def every(seconds: float, task: str) -> dict[str, Any]:
    """A timetable entry that is dropped rather than piled up when no worker takes it in time."""
    return {"task": task, "schedule": seconds, "options": {"expires": max(1, int(seconds) - 1)}}


app.conf.beat_schedule = {
    "settle turns whose worker died": every(10, "conversations.tasks.sweep_turns"),
    "continue imports whose worker died": every(15, "conversations.tasks.sweep_imports"),
    "index what is not yet indexed": every(5, "memory.tasks.sweep_unindexed"),
    "sync with the remote engram": every(120, "memory.tasks.sync_engram"),
    "write the letters that are due": every(30, "conversations.tasks.sweep_letters"),
    "look on for themes where a worker died": every(15, "conversations.tasks.sweep_themes"),
    "screen what came from elsewhere": every(15, "memory.tasks.screen_held"),
    "send what the outbox holds": every(10, "memory.tasks.mirror"),
    "tell the remote engram what happened": every(10, "memory.tasks.tell_what_happened"),
    "remove what the outbox sent long ago": every(3600, "memory.tasks.prune_outbox"),
    "tell stewards of bells": every(20, "safety.tasks.tell_stewards"),
    "replay bells from the fallback file": every(15, "safety.tasks.replay_fallback"),
    "prove that beat and a worker are alive": every(15, "neuron_site.tasks.leave_canary"),
}
