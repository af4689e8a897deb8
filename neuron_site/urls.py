"""Addresses: pages, admin, API, and what machines ask."""

from django.contrib import admin
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView

from neuron_site import health

urlpatterns = [
    path("livez", health.livez),
    path("readyz", health.readyz),
    path("admin/", admin.site.urls),
    path("api/schema", SpectacularAPIView.as_view()),
    path("api/v1/", include("conversations.api.urls")),
    path("api/v1/", include("memory.api")),
    path("api/v1/", include("safety.api")),
    path("", include("memory.engram.server")),
    path("accounts/", include("allauth.account.urls")),
    path("", include("conversations.urls")),
]

handler400 = "conversations.views.errors.bad_request"
handler403 = "conversations.views.errors.permission_denied"
handler404 = "conversations.views.errors.page_not_found"
handler500 = "conversations.views.errors.server_error"
