"""The canary: proof that beat, broker and a worker are alive together."""

from celery import shared_task

from neuron_site import canary


@shared_task(ignore_result=True)
def leave_canary(bearer: str = "beat") -> None:
    canary.leave(bearer)
