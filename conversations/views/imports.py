"""Bringing old chats along: the upload, its progress, and the report per chat."""

from uuid import UUID

from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from conversations import importing
from conversations.access import PersonRequest, import_or_404, person_required
from conversations.forms import ImportForm
from conversations.models import ImportedChat, ImportJob
from conversations.views import frame

PER_PAGE = 100


@require_http_methods(["GET", "HEAD", "POST"])
@person_required
def imports(request: PersonRequest) -> HttpResponse:
    form = ImportForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        try:
            job = importing.start_import(owner=request.user, upload=form.cleaned_data["upload"])
        except importing.UploadTooLarge:
            form.add_error("upload", "This file is larger than this Neuron takes. Nothing of it was kept.")
        else:
            return redirect("import", job.pk)
    jobs = ImportJob.objects.for_owner(request.user).newest_first()[:30]
    status = 422 if form.errors else 200
    return frame.page(request, "imports/list.html", {"form": form, "jobs": jobs}, status)


@require_safe
@person_required
def show(request: PersonRequest, job_id: UUID) -> HttpResponse:
    """The page; htmx asks for the progress alone, until the job is settled."""
    job = import_or_404(request, job_id)
    chats = job.chats.select_related("session")
    context = {
        "job": job,
        "counts": _counts(job),
        "chats": Paginator(chats, PER_PAGE).get_page(request.GET.get("page")),
        "is_running": job.state in (ImportJob.State.WAITING, ImportJob.State.RUNNING),
    }
    if request.htmx:
        return render(request, "imports/job.html#report", context)
    return frame.page(request, "imports/job.html", context)


def _counts(job: ImportJob) -> list[tuple[str, int]]:
    """How many chats ended how, in the order of the outcomes."""
    found = dict(job.chats.order_by().values_list("outcome").annotate(Count("pk")))
    return [(label, found[value]) for value, label in ImportedChat.Outcome.choices if found.get(value)]
