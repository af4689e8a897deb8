"""Addresses of the API below /api/v1/."""

from django.urls import path

from conversations.api.export import Export
from conversations.api.imports import ImportedChats, Imports, OneImport
from conversations.api.kept import Facts, OneFact
from conversations.api.search import Search
from conversations.api.sessions import OneSession, Sessions
from conversations.api.tokens import OneToken, Tokens
from conversations.api.turns import OneTurn, Recent, RetryTurn, StopTurn, Turns

urlpatterns = [
    path("sessions", Sessions.as_view()),
    path("sessions/<uuid:session_id>", OneSession.as_view()),
    path("sessions/<uuid:session_id>/turns", Turns.as_view()),
    path("turns/<uuid:turn_id>", OneTurn.as_view()),
    path("turns/<uuid:turn_id>/stop", StopTurn.as_view()),
    path("turns/<uuid:turn_id>/retry", RetryTurn.as_view()),
    path("recent", Recent.as_view()),
    path("knowledge", Facts.as_view()),
    path("knowledge/<uuid:node_id>", OneFact.as_view()),
    path("memory/search", Search.as_view()),
    path("imports", Imports.as_view()),
    path("imports/<uuid:job_id>", OneImport.as_view()),
    path("imports/<uuid:job_id>/chats", ImportedChats.as_view()),
    path("tokens", Tokens.as_view()),
    path("tokens/<slug:key>", OneToken.as_view()),
    path("export", Export.as_view()),
]
