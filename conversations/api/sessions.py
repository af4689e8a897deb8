"""Sessions: list, begin, read, change, delete."""

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from conversations import services
from conversations.api.base import View, person, session_or_404
from conversations.models import Session
from conversations.serializers import NewSessionSerializer, SessionChangesSerializer, SessionSerializer


class Sessions(View):
    queryset = Session.objects.none()
    serializer_class = SessionSerializer
    ordering = ("-last_turn_at", "-id")

    @extend_schema(responses={200: SessionSerializer(many=True)})
    def get(self, request: Request) -> Response:
        """The sessions, newest first."""
        return self.listed(
            Session.objects.for_owner(person(request)).select_related("imprint"), SessionSerializer
        )

    @extend_schema(request=NewSessionSerializer, responses={201: SessionSerializer})
    def post(self, request: Request) -> Response:
        """Begin a session."""
        given = NewSessionSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        session = services.create_session(owner=person(request), **given.validated_data)
        return Response(SessionSerializer(session).data, status=201, headers={"Location": _address(session)})


class OneSession(View):
    queryset = Session.objects.none()
    serializer_class = SessionSerializer

    @extend_schema(responses={200: SessionSerializer})
    def get(self, request: Request, session_id: UUID) -> Response:
        """One session."""
        return Response(SessionSerializer(session_or_404(request, session_id)).data)

    @extend_schema(request=SessionChangesSerializer, responses={200: SessionSerializer})
    def patch(self, request: Request, session_id: UUID) -> Response:
        """Rename it, pin it, or change its mode."""
        session = session_or_404(request, session_id)
        given = SessionChangesSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        changes = given.validated_data
        if "title" in changes:
            services.rename_session(session=session, title=changes["title"])
        if "mode" in changes:
            services.set_mode(session=session, mode=changes["mode"])
        if "pinned" in changes:
            services.pin_session(session=session, pinned=changes["pinned"])
        return Response(SessionSerializer(session).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, session_id: UUID) -> Response:
        """Forget it for good, with all that memory holds of it."""
        services.delete_session(session=session_or_404(request, session_id))
        return Response(status=204)


def _address(session: Session) -> str:
    return f"/api/v1/sessions/{session.pk}"
