"""Addresses of the pages."""

from django.urls import path, re_path

from conversations.views import (
    about,
    data,
    imports,
    protocol,
    search,
    sessions,
    settings,
    stream,
    turns,
    welcome,
)

urlpatterns = [
    path("", sessions.home, name="home"),
    path("welcome/<str:token>/", welcome.welcome, name="welcome"),
    path("sessions/", sessions.session_list, name="session-list"),
    path("sessions/older/", sessions.older, name="older"),
    path("sessions/new/", turns.begin, name="begin"),
    path("sessions/<uuid:session_id>/", sessions.show, name="session"),
    path("sessions/<uuid:session_id>/rename/", sessions.rename, name="session-rename"),
    path("sessions/<uuid:session_id>/pin/", sessions.pin, name="session-pin"),
    path("sessions/<uuid:session_id>/delete/", sessions.delete, name="session-delete"),
    path("sessions/<uuid:session_id>/turns/", turns.post, name="turn-post"),
    path("sessions/<uuid:session_id>/turns/<int:index>/edit/", turns.edit, name="turn-edit"),
    path("sessions/<uuid:session_id>/turns/<int:index>/fork/", turns.fork, name="turn-fork"),
    path("turns/<uuid:turn_id>/", turns.show, name="turn"),
    path("turns/<uuid:turn_id>/stream", stream.stream, name="turn-stream"),
    path("turns/<uuid:turn_id>/stop/", turns.stop, name="turn-stop"),
    path("turns/<uuid:turn_id>/retry/", turns.retry, name="turn-retry"),
    path("turns/<uuid:turn_id>/answers/<int:number>/", turns.choose, name="turn-choose"),
    path("turns/<uuid:turn_id>/drawn/", turns.drawn, name="turn-drawn"),
    path("search/", search.search_page, name="search"),
    path("search/sessions/", search.session_box, name="session-box"),
    path("import/", imports.imports, name="imports"),
    path("import/<uuid:job_id>/", imports.show, name="import"),
    path("settings/", settings.settings_page, name="settings"),
    path("settings/tokens/", settings.create_token, name="token-create"),
    path("settings/tokens/<str:token_key>/revoke/", settings.revoke_token, name="token-revoke"),
    path("settings/data/", data.data, name="data"),
    path("settings/data/conversations/", data.export, name="data-export"),
    path("settings/data/memory/", data.memory, name="data-memory"),
    path("about/", about.about, name="about"),
    re_path(r"^safety/?$", protocol.page, name="safety"),
]
