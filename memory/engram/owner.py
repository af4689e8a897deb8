"""Whose memory the remote engram holds: one token stands for one person, so exactly one person's is mirrored."""

from django.conf import settings
from django.contrib.auth import get_user_model


def engram_owner_id() -> int | None:
    """The account named by ENGRAM_OWNER, else the first one made; None without a remote engram or an account.

    Mirroring two people with one token would show each of them the other's memory at the next sync.
    """
    if not settings.ENGRAM_URL:
        return None
    people = get_user_model().objects.filter(is_active=True)
    if settings.ENGRAM_OWNER:
        people = people.filter(username=settings.ENGRAM_OWNER)
    return people.order_by("pk").values_list("pk", flat=True).first()
