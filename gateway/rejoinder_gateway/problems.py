"""Errors as problem details (RFC 9457): what was wrong, in words for the person who reads them.

Invariant: a client never gets a stack trace, a path of the machine or the text of an exception
that was not written for it. Whatever is unexpected is logged under a reference, and the client is
told the reference alone.
"""

from __future__ import annotations

import json
import logging
import secrets
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException as AnyHTTPException

log = logging.getLogger("rejoinder.gateway")

MEDIA_TYPE = "application/problem+json"


class Problem(HTTPException):
    """Raised anywhere below the guard; `extras` become fields of the answer."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str,
        headers: dict[str, str] | None = None,
        **extras: Any,
    ) -> None:
        super().__init__(status, detail, headers)
        self.title, self.extras = title, extras

    def body(self) -> bytes:
        kind = self.title.lower().replace(" ", "-")
        content = {
            "type": f"urn:rejoinder:problem:{kind}",
            "title": self.title,
            "status": self.status_code,
            "detail": self.detail,
            **self.extras,
        }
        return json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")

    def response(self) -> Response:
        return Response(self.body(), self.status_code, self.headers, media_type=MEDIA_TYPE)


class ProblemDetails(BaseModel):
    """What every error looks like."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "example": {
                "type": "urn:rejoinder:problem:stale-move",
                "title": "Stale move",
                "status": 409,
                "detail": "move number 3 was sent, but 5 moves have been made",
                "move_number": 5,
            }
        },
    )

    type: str = Field(description="A name of the kind of problem that does not change.")
    title: str
    status: int = Field(ge=400, le=599)
    detail: str


# For every operation: whatever is not a success is a problem.
PROBLEM_RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
    }
}


def install(app: FastAPI) -> None:
    """Turn every error below the routes into a problem."""

    @app.exception_handler(Problem)
    async def _problem(_: Request, problem: Problem) -> Response:
        return problem.response()

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> Response:
        return invalid_request(request, error).response()

    @app.exception_handler(AnyHTTPException)
    async def _http(_: Request, error: AnyHTTPException) -> Response:
        title = HTTPStatus(error.status_code).phrase.capitalize()
        headers = dict(error.headers or {})
        return Problem(error.status_code, title, str(error.detail), headers).response()

    @app.exception_handler(SQLAlchemyError)
    async def _database(_: Request, error: SQLAlchemyError) -> Response:
        reference = note(error)
        detail = f"the database cannot be used now; the log has more under {reference}"
        return Problem(503, "Database unavailable", detail).response()

    without = app.openapi

    def document() -> dict[str, Any]:
        """The OpenAPI document, with the model that all its problems refer to."""
        made = without()
        schema = ProblemDetails.model_json_schema()
        made["components"]["schemas"].setdefault(ProblemDetails.__name__, schema)
        return made

    app.openapi = document  # type: ignore[method-assign] # as FastAPI's documentation has it


def invalid_request(request: Request, error: RequestValidationError) -> Problem:
    """Every field that was wrong, by its path; what was sent is not repeated."""
    errors = [
        {"field": ".".join(str(part) for part in e["loc"]), "problem": str(e["msg"])}
        for e in error.errors()
    ]
    if errors[0]["field"] == "body" and not _is_json(request):
        errors[0]["problem"] = "send it as JSON, with the header `Content-Type: application/json`"
    told = "; ".join(f"{e['field']}: {e['problem']}" for e in errors)
    return Problem(422, "Invalid request", told, errors=errors)


def _is_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind[-5:] == "+json")


def unexpected(error: BaseException) -> Problem:
    reference = note(error)
    detail = f"something went wrong here; the log has more under {reference}"
    return Problem(500, "Internal error", detail)


def note(error: BaseException) -> str:
    """Log an error that nobody expected; returns what it can be found by."""
    reference = secrets.token_hex(4)
    log.error("unexpected error %s", reference, exc_info=error)
    return reference
