"""The API's description: what drf-spectacular cannot see of it."""

from typing import Any

PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "An error (RFC 9457): what happened, what was kept, what to do. `code` is for programs.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "errors": {"description": "With `code` invalid: what is wrong, by field."},
    },
    "required": ["type", "title", "status", "detail", "code"],
}


def describe_problems(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Every call answers with a problem where it does not answer as described."""
    result["components"]["schemas"]["Problem"] = PROBLEM
    answer = {
        "description": "A problem",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"]["default"] = answer
    return result
