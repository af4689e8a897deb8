"""What answers, what screens, and what is kept: said plainly."""

from django.http import HttpResponse
from django.views.decorators.http import require_safe

import conversations.llm
import safety.screening
from conversations.access import PersonRequest, person_required
from conversations.views import frame


@require_safe
@person_required
def about(request: PersonRequest) -> HttpResponse:
    context = {"model": conversations.llm.described(), "detector": safety.screening.detector_version()}
    return frame.page(request, "about.html", context)
