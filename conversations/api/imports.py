"""Imports: bring an export along, follow it, read its report."""

from uuid import UUID

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from conversations import importing
from conversations.api.base import View, person
from conversations.models import ImportedChat, ImportJob
from conversations.serializers import ImportedChatSerializer, ImportSerializer, NewImportSerializer
from neuron_site.problems import Problem


class Imports(View):
    queryset = ImportJob.objects.none()
    serializer_class = ImportSerializer
    parser_classes = [MultiPartParser]
    ordering = ("-created_at", "-id")

    @extend_schema(responses={200: ImportSerializer(many=True)})
    def get(self, request: Request) -> Response:
        """The imports, newest first."""
        return self.listed(ImportJob.objects.for_owner(person(request)), ImportSerializer)

    @extend_schema(request=NewImportSerializer, responses={202: ImportSerializer})
    def post(self, request: Request) -> Response:
        """Send an export. It is worked off by a job whose progress the Location tells."""
        given = NewImportSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        try:
            job = importing.start_import(owner=person(request), upload=given.validated_data["upload"])
        except importing.UploadTooLarge as error:
            raise Problem(
                status_code=413,
                code="too_large",
                detail="The file is larger than this Neuron takes. Nothing was kept.",
            ) from error
        headers = {"Location": f"/api/v1/imports/{job.pk}"}
        return Response(ImportSerializer(job).data, status=202, headers=headers)


class OneImport(View):
    queryset = ImportJob.objects.none()
    serializer_class = ImportSerializer

    @extend_schema(responses={200: ImportSerializer})
    def get(self, request: Request, job_id: UUID) -> Response:
        """How far an import is."""
        return Response(ImportSerializer(_job_or_404(request, job_id)).data)


class ImportedChats(View):
    queryset = ImportedChat.objects.none()
    serializer_class = ImportedChatSerializer
    ordering = ("position",)

    @extend_schema(responses={200: ImportedChatSerializer(many=True)})
    def get(self, request: Request, job_id: UUID) -> Response:
        """What became of each chat of the export."""
        return self.listed(_job_or_404(request, job_id).chats.all(), ImportedChatSerializer)


def _job_or_404(request: Request, job_id: UUID) -> ImportJob:
    return get_object_or_404(ImportJob.objects.for_owner(person(request)), pk=job_id)
