"""Jobs of the memory app: interfaces to services, by id, safe to run twice."""

from uuid import UUID

from celery import shared_task

from memory import indexing
from memory.engram import screening, sync


@shared_task(ignore_result=True)
def index_nodes(node_ids: list[str]) -> None:
    indexing.index_nodes(node_ids=[UUID(node_id) for node_id in node_ids])


@shared_task(ignore_result=True)
def sweep_unindexed() -> None:
    indexing.index_pending()


@shared_task(ignore_result=True)
def screen_held() -> None:
    screening.screen_held()


@shared_task(ignore_result=True)
def sync_engram() -> None:
    sync.sync_engram()
