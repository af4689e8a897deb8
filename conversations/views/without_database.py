"""Taking a message while the database is away: a hard bell is heard all the same, and every other message is kept
in the composer."""

import uuid
from collections.abc import Callable
from functools import update_wrapper
from typing import Concatenate, ParamSpec

from django.contrib.auth import SESSION_KEY
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from conversations import receiving
from conversations.forms import MessageForm
from neuron_site.problems import database_is_away

P = ParamSpec("P")
AWAY = "Neuron cannot reach its memory at the moment. Your words are kept here: send them again in a minute."


def heard_without_database(
    view: Callable[Concatenate[HttpRequest, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """The view, and where it fails for want of a database the answer that needs none."""

    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except (OperationalError, InterfaceError) as error:
            if not database_is_away(error):
                raise
            session_id = kwargs.get("session_id")
            return _answer(request, session_id if isinstance(session_id, uuid.UUID) else None)

    update_wrapper(guarded, view)
    return guarded


def _answer(request: HttpRequest, session_id: uuid.UUID | None) -> HttpResponse:
    # Who it is stands in the web session, which is kept in the cache too; the person's row cannot be read.
    owner_id = request.session.get(SESSION_KEY)
    form = MessageForm(request.POST)
    received = None
    if owner_id is not None and form.is_valid():
        received = receiving.receive_without_database(
            owner_id=int(owner_id),
            session_id=session_id,
            text=form.cleaned_data["text"],
            client_key=form.cleaned_data["client_key"],
            accept_language=request.headers.get("Accept-Language", ""),
        )
    fragment = bool(getattr(request, "htmx", False))
    if received is not None:
        card = {"bell": received.bell, "resources": received.resources, "client_key": uuid.uuid4().hex}
        return render(request, "turns/rang.html" if fragment else "turns/rang_alone.html", card)
    note = {"note": AWAY, "client_key": form["client_key"].value() or uuid.uuid4().hex}
    if fragment:
        response = render(request, "turns/not_sent.html", note, status=503)
        response["HX-Retarget"], response["HX-Reswap"] = "#composer-note", "innerHTML"
        return response
    return render(
        request, "turns/not_sent_alone.html", {**note, "draft": request.POST.get("text", "")}, status=503
    )
