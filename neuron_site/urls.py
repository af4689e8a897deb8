"""Addresses: pages, admin, API, and what machines ask."""

from django.contrib import admin
from django.urls import include, path

from neuron_site import health

urlpatterns = [
    path("livez", health.livez),
    path("readyz", health.readyz),
    path("admin/", admin.site.urls),
    path("accounts/", include("allauth.account.urls")),
]
