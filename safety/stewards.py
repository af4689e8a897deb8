"""Who reviews bells: staff with the right to, and nobody else."""

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Permission, User
from django.db.models import Q, QuerySet

GROUP = "Stewards"
RIGHT = "safety.change_bellevent"


def is_steward(person: "AbstractBaseUser | AnonymousUser") -> bool:
    """Whether this person may review bells."""
    return bool(
        getattr(person, "is_active", False) and getattr(person, "is_staff", False) and person.has_perm(RIGHT)  # type: ignore[union-attr]
    )


def stewards() -> "QuerySet[User]":
    """Everybody who may review bells: by their group, by a right of their own, or as superuser."""
    right = Permission.objects.filter(content_type__app_label="safety", codename="change_bellevent")
    return User.objects.filter(
        Q(is_superuser=True) | Q(groups__permissions__in=right) | Q(user_permissions__in=right),
        is_active=True,
        is_staff=True,
    ).distinct()
