"""The web process: what uvicorn serves."""

import os
import threading

import django
from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponseBase

from neuron_site.garbage import collect_seldom

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "neuron_site.settings")


class OneThreadHandler(ASGIHandler):
    """Django's, with the middleware and the view of a request in one go in one thread.

    All of them are plain functions. Django's own handler goes back to the event loop between the middleware and the
    view, and from there to the thread again for each of what stands around the view. A view that streams returns at
    once all the same, and its iterator is read in the loop.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response, thread_sensitive=True)(request)


collect_seldom()
django.setup(set_prefix=False)
application = OneThreadHandler()

from safety.services import warm_up  # noqa: E402 - Django is set up only now

# Else the first message would wait for the detector to be loaded.
threading.Thread(target=warm_up, name="warm-up", daemon=True).start()
