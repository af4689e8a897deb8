"""The one-time link that creates the first owner."""

from django.contrib.auth import login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from conversations import services
from conversations.accounts import keep_time_zone
from conversations.forms import OwnerForm
from neuron_site import invitation


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def welcome(request: HttpRequest, token: str) -> HttpResponse:
    if not invitation.is_open(token):
        raise Http404
    form = OwnerForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            owner = services.create_owner(token=token, **form.cleaned_data)
        except services.InvitationSpent as error:
            raise Http404 from error
        login(request, owner, backend="django.contrib.auth.backends.ModelBackend")
        keep_time_zone(request, owner)
        return redirect("home")
    return render(request, "welcome.html", {"form": form}, status=422 if form.errors else 200)
