"""Tokens for programs: made, shown once, revoked."""

from django.http import Http404
from drf_spectacular.utils import extend_schema
from knox.models import AuthToken
from rest_framework.request import Request
from rest_framework.response import Response

from conversations.api.base import View, person
from conversations.serializers import NewTokenSerializer, TokenSerializer
from conversations.tokens import create_token, revoke_token, tokens_of


class Tokens(View):
    queryset = AuthToken.objects.none()
    serializer_class = TokenSerializer
    pagination_class = None

    @extend_schema(responses={200: TokenSerializer(many=True)})
    def get(self, request: Request) -> Response:
        """The tokens, newest first, by their first characters."""
        return Response(TokenSerializer(tokens_of(person(request)), many=True).data)

    @extend_schema(request=None, responses={201: NewTokenSerializer})
    def post(self, request: Request) -> Response:
        """A new token. It is shown this once: only its digest is kept."""
        return Response({"token": create_token(owner=person(request))}, status=201)


class OneToken(View):
    queryset = AuthToken.objects.none()
    serializer_class = TokenSerializer

    @extend_schema(responses={204: None})
    def delete(self, request: Request, key: str) -> Response:
        """Revoke a token; it opens nothing from now on."""
        if not revoke_token(owner=person(request), token_key=key):
            raise Http404
        return Response(status=204)
