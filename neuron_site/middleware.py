"""What the admin's pages need beyond the content security policy of all others."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.urls import reverse


class AdminContentSecurity:
    """unfold's menus are Alpine, which makes functions out of attributes; its colours are an inline style sheet.

    Nothing more is opened: no inline script, no other host; and below /admin/ alone.
    """

    RELAXED = {"script-src": ["'unsafe-eval'"], "style-src": ["'unsafe-inline'"]}

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.below = reverse("admin:index")

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path.startswith(self.below):
            response._csp_update = self.RELAXED  # type: ignore[attr-defined]
        return response
