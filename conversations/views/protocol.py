"""The public page on safety: what is done, by which layers, how well, and whom to call. Open to everybody."""

from typing import cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

import safety.protocol
import safety.resources
from conversations import protocol
from conversations.access import PersonRequest
from conversations.views import frame


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """With the list of sessions beside it for somebody signed in; for everybody else by itself."""
    here = (
        frame.country_of(cast(PersonRequest, request))
        if request.user.is_authenticated
        else settings.NEURON_COUNTRY
        or safety.resources.country_from(request.headers.get("Accept-Language", ""))
    )
    context = {
        "sections": protocol.sections(),
        "layers": safety.protocol.layers(),
        "measured": safety.protocol.measured(),
        "countries": safety.protocol.countries(here),
        "here": here,
        "stale_days": safety.resources.STALE_AFTER.days,
    }
    if request.user.is_authenticated:
        return frame.page(cast(PersonRequest, request), "safety/inside.html", context)
    return render(request, "safety/outside.html", context)
