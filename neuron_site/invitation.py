"""The one-time link that makes the first owner. It is derived from the secret key and dies with the first user."""

from django.contrib.auth import get_user_model
from django.urls import reverse
from django.utils.crypto import constant_time_compare, salted_hmac


def token() -> str:
    """The token of this installation; only who can read the secret key can know it."""
    return salted_hmac("neuron.first-owner", "welcome", algorithm="sha256").hexdigest()[:40]


def is_open(given: str) -> bool:
    """Whether this token still opens the door: it is ours, and nobody has come in yet."""
    return constant_time_compare(given, token()) and not get_user_model().objects.exists()


def current_link(base_url: str) -> str | None:
    """The address that makes the first owner, or None once there is one."""
    if get_user_model().objects.exists():
        return None
    return base_url + reverse("welcome", args=[token()])
