"""A person's data: everything that was said, and their memory as a snapshot, to take along and to bring back."""

from django.contrib.messages import success
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from conversations.access import PersonRequest, person_required
from conversations.exporters import write_export
from conversations.forms import SnapshotForm
from conversations.views import frame
from memory.engram.snapshot import BadSnapshot, import_snapshot, stream_snapshot
from memory.models import MemoryNode


@require_http_methods(["GET", "HEAD", "POST"])
@person_required
def data(request: PersonRequest) -> HttpResponse:
    form = SnapshotForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        try:
            taken = import_snapshot(owner=request.user, file=form.cleaned_data["snapshot"])
        except BadSnapshot as error:
            form.add_error("snapshot", str(error))
        else:
            success(
                request,
                f"{_count(taken.nodes, 'memory', 'memories')} and {_count(taken.edges, 'connection', 'connections')} "
                "came back. They are found again as soon as they have been screened.",
            )
            return redirect("data")
    held = MemoryNode.objects.owned_by(request.user).given_out().count()
    return frame.page(
        request, "settings/data.html", {"form": form, "held": held}, 422 if form.errors else 200
    )


@require_safe
@person_required
def export(request: PersonRequest) -> HttpResponseBase:
    return _download(StreamingHttpResponse(write_export(request.user)), "neuron-export.json")


@require_safe
@person_required
def memory(request: PersonRequest) -> HttpResponseBase:
    return _download(StreamingHttpResponse(stream_snapshot(request.user)), "neuron-memory.json")


def _download(response: HttpResponseBase, name: str) -> HttpResponseBase:
    response["Content-Type"] = "application/json"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"
