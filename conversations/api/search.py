"""Search in all that a person's memory holds."""

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from conversations.api.base import View, person
from conversations.finding import Searched, find
from conversations.models import Session
from conversations.search_serializers import SearchedSerializer, SearchQuerySerializer
from memory.search import By, Limits


class Search(View):
    queryset = Session.objects.none()
    serializer_class = SearchedSerializer
    pagination_class = None

    @extend_schema(parameters=[SearchQuerySerializer], responses={200: SearchedSerializer})
    def get(self, request: Request) -> Response:
        """What memory holds for a query, by words, by meaning or both; and sessions by title."""
        given = SearchQuerySerializer(data=request.query_params)
        given.is_valid(raise_exception=True)
        asked = given.validated_data
        if asked["session"]:
            get_object_or_404(Session.objects.for_owner(person(request)), pk=asked["session"])
        limits = Limits(
            since=asked["since"],
            until=asked["until"],
            node_types=(asked["type"],) if asked["type"] else (),
            session_id=asked["session"],
        )
        searched = find(person(request), asked["q"], by=By(asked["by"]), limits=limits, limit=asked["limit"])
        return Response(SearchedSerializer(_as_data(searched)).data)


def _as_data(searched: Searched) -> dict[str, object]:
    return {
        "note": searched.note,
        "sessions": searched.sessions,
        "hits": [
            {
                "node_id": hit.found.node.pk,
                "node_type": hit.found.node.node_type,
                "role": hit.found.role,
                "speaker": hit.found.speaker,
                "title": hit.title,
                "link": hit.href,
                "session_id": hit.found.node.session_id,
                "turn_index": hit.found.node.turn_index,
                "occurred_at": hit.found.node.occurred_at,
                "snippet": hit.found.snippet,
                "marks": [list(span) for span in hit.found.marks],
                "before": hit.found.before,
                "after": hit.found.after,
                "sure": hit.found.sure,
            }
            for hit in searched.hits
        ],
    }
