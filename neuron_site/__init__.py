"""The project: settings, addresses, the bundled servers and the commands that start them."""

from neuron_site.celery import app as celery_app

__all__ = ["celery_app"]
