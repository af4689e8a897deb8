"""Pages for what went wrong."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's own page has inline styles, which our content security policy forbids."""
    return render(request, "errors/csrf.html", status=403)
