"""Who may sign up, and what signing in leaves in the web session."""

import zoneinfo

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest

from conversations.middleware import SESSION_KEY
from conversations.models import Profile


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """allauth's adapter with sign-up decided by NEURON_SIGNUP_OPEN."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.SIGNUP_OPEN)

    def login(self, request: HttpRequest, user: AbstractBaseUser) -> None:
        super().login(request, user)
        keep_time_zone(request, user)


def keep_time_zone(request: HttpRequest, user: AbstractBaseUser) -> None:
    """Put the person's time zone where the middleware finds it without a query.

    At the very first sign-in that is the browser's own, which the sign-in page sends along; whether they are under 18
    comes with the page that makes the account.
    """
    named = request.POST.get("time_zone", "")
    first = {
        "time_zone": named if named in zoneinfo.available_timezones() else "UTC",
        "is_minor": request.POST.get("is_minor") == "on",
    }
    profile, _ = Profile.objects.get_or_create(owner_id=user.pk, defaults=first)
    request.session[SESSION_KEY] = profile.time_zone
