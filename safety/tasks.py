"""Jobs of the safety app."""

from celery import shared_task

from safety import notices, services


@shared_task(ignore_result=True)
def replay_fallback() -> None:
    services.replay_fallback()


@shared_task(ignore_result=True)
def tell_stewards() -> None:
    notices.sweep()
