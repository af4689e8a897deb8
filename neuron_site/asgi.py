"""The web process: what uvicorn serves."""

import os
import threading

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "neuron_site.settings")

application = get_asgi_application()

from safety.services import warm_up  # noqa: E402 - Django is set up only now

# Else the first message would wait for the detector to be loaded.
threading.Thread(target=warm_up, name="warm-up", daemon=True).start()
