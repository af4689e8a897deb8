"""API tokens of a person: made, shown once, revoked."""

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import QuerySet
from knox.models import AuthToken


def tokens_of(owner: AbstractBaseUser) -> "QuerySet[AuthToken]":
    """Newest first; only their first characters are known."""
    return AuthToken.objects.filter(user_id=owner.pk).order_by("-created")  # type: ignore[no-any-return]


def create_token(*, owner: AbstractBaseUser) -> str:
    """A new token in full. It is kept as a digest and cannot be shown again."""
    _, token = AuthToken.objects.create(user=owner)
    return str(token)


def revoke_token(*, owner: AbstractBaseUser, token_key: str) -> bool:
    """False where the person has no such token."""
    removed, _ = AuthToken.objects.filter(user_id=owner.pk, token_key=token_key).delete()
    return bool(removed)
