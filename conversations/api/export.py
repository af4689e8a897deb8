"""Everything a person said and was answered, to take along."""

from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from conversations.api.base import View, person
from conversations.exporters import write_export
from conversations.models import Session
from conversations.serializers import SessionSerializer


class Export(View):
    queryset = Session.objects.none()
    serializer_class = SessionSerializer
    pagination_class = None

    @extend_schema(responses={(200, "application/json"): OpenApiTypes.OBJECT})
    def get(self, request: Request) -> HttpResponseBase:
        """All sessions with all their turns, as one JSON document, streamed."""
        response = StreamingHttpResponse(write_export(person(request)), content_type="application/json")
        response["Content-Disposition"] = 'attachment; filename="neuron-export.json"'
        response["Cache-Control"] = "no-store"
        return response
