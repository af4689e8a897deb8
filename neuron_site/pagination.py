"""Pages of a list by cursor: stable while rows are added, and as fast at the end as at the beginning."""

from typing import Any

from rest_framework.pagination import CursorPagination
from rest_framework.request import Request


class CursorPages(CursorPagination):
    """Orders by the view's `ordering`, whose last member decides between equals."""

    page_size = 50
    page_size_query_param = "limit"
    max_page_size = 500

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> tuple[str, ...]:
        return tuple(view.ordering)
