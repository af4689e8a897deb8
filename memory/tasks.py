"""Jobs of the memory app: interfaces to services, by id, safe to run twice."""

from typing import Any
from uuid import UUID

from celery import shared_task
from celery.signals import worker_shutting_down

from memory import connections, indexing
from memory.engram import mirror as mirroring
from memory.engram import outbox, screening, sync


@shared_task(ignore_result=True)
def index_nodes(node_ids: list[str]) -> None:
    indexing.index_nodes(node_ids=[UUID(node_id) for node_id in node_ids])
    connections.connect_pending()


@shared_task(ignore_result=True)
def sweep_unindexed() -> None:
    indexing.index_pending()
    connections.connect_pending()


@shared_task(ignore_result=True)
def screen_held() -> None:
    screening.screen_held()


@shared_task(ignore_result=True)
def sync_engram() -> None:
    sync.sync_engram()


@worker_shutting_down.connect
def stop_mirroring(**_: Any) -> None:
    mirroring.stopping.set()


@shared_task(ignore_result=True)
def mirror() -> None:
    mirroring.send_due()


@shared_task(ignore_result=True)
def tell_what_happened() -> None:
    mirroring.tell_what_happened()


@shared_task(ignore_result=True)
def prune_outbox() -> None:
    outbox.prune_sent()
