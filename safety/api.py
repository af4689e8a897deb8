"""Bells over the API, for stewards. To everybody else there is nothing here: 404, not 403."""

from typing import Any, cast
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from safety.models import BellEvent, BellReview
from safety.services import note_view, review_bell
from safety.stewards import is_steward

REVIEWED = [state for state in BellEvent.State.choices if state[0] != BellEvent.State.OPEN]


class BellSerializer(serializers.ModelSerializer[BellEvent]):
    """A bell in the list: no words of the message."""

    class Meta:
        model = BellEvent
        fields = ("id", "level", "reason", "state", "score", "ideation_level", "created_at")
        read_only_fields = fields


class ReviewSerializer(serializers.ModelSerializer[BellReview]):
    """One step of a review."""

    steward = serializers.CharField(source="steward.username", read_only=True)

    class Meta:
        model = BellReview
        fields = ("state", "note", "steward", "created_at")
        read_only_fields = fields


class SignalSerializer(serializers.Serializer[Any]):
    """One thing that was found."""

    layer = serializers.CharField()
    rule = serializers.CharField()
    span = serializers.ListField(child=serializers.IntegerField(), allow_null=True)
    weight = serializers.FloatField()
    matched = serializers.CharField()


class OneBellSerializer(serializers.ModelSerializer[BellEvent]):
    """A bell with what was kept of it: at most 80 characters of the message."""

    person = serializers.CharField(source="owner.username", default=None, read_only=True, allow_null=True)
    signals = SignalSerializer(many=True, read_only=True)
    resources_shown = serializers.ListField(child=serializers.CharField(), read_only=True)
    reviews = ReviewSerializer(many=True, read_only=True)

    class Meta:
        model = BellEvent
        fields = (
            *BellSerializer.Meta.fields,
            "person",
            "session_id",
            "after_index",
            "summary",
            "signals",
            "detector_version",
            "resources_shown",
            "reviews",
        )
        read_only_fields = fields


class NewReviewSerializer(serializers.Serializer[Any]):
    """How a review ends, and why."""

    state = serializers.ChoiceField(choices=REVIEWED)
    note = serializers.CharField(max_length=10_000, required=False, allow_blank=True, default="")


class View(GenericAPIView[BellEvent]):
    """Open to stewards alone."""

    queryset = BellEvent.objects.none()
    serializer_class = BellSerializer
    ordering: tuple[str, ...] = ("created_at", "id")

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not is_steward(request.user):
            raise Http404

    def bell_or_404(self, bell_id: UUID) -> BellEvent:
        return get_object_or_404(_all().prefetch_related("reviews__steward"), pk=bell_id)


class Bells(View):
    @extend_schema(
        parameters=[OpenApiParameter("state", str, enum=BellEvent.State.values)],
        responses={200: BellSerializer(many=True)},
    )
    def get(self, request: Request) -> Response:
        """The bells that have waited longest first; `state=open` gives the queue."""
        bells = _all()
        state = request.query_params.get("state")
        if state:
            bells = bells.filter(state=state) if state in BellEvent.State.values else bells.none()
        page = self.paginate_queryset(bells)
        return self.get_paginated_response(BellSerializer(page or [], many=True).data)


class OneBell(View):
    @extend_schema(responses={200: OneBellSerializer})
    def get(self, request: Request, bell_id: UUID) -> Response:
        """One bell with its review. That you opened it is kept."""
        bell = self.bell_or_404(bell_id)
        note_view(bell=bell, steward=cast(User, request.user))
        return Response(OneBellSerializer(bell).data)


class Reviews(View):
    @extend_schema(request=NewReviewSerializer, responses={201: ReviewSerializer})
    def post(self, request: Request, bell_id: UUID) -> Response:
        """Add a step to the review: acknowledged, resolved or false positive. Nothing of it is ever removed."""
        bell = self.bell_or_404(bell_id)
        given = NewReviewSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        review = review_bell(bell=bell, steward=cast(User, request.user), **given.validated_data)
        return Response(ReviewSerializer(review).data, status=201)


def _all() -> "QuerySet[BellEvent]":
    return BellEvent.objects.select_related("owner")


urlpatterns = [
    path("bells", Bells.as_view()),
    path("bells/<uuid:bell_id>", OneBell.as_view()),
    path("bells/<uuid:bell_id>/reviews", Reviews.as_view()),
]
