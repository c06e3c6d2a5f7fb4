"""Parameters and bodies of requests, and the JSON of responses, for each door of the server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from tgraph.errors import UsageError
from tgraph.extensions.server.problems import TooLargeError
from tgraph.extensions.server.service import Service
from tgraph.shortages import explain_shortage


class QueryParameters(BaseModel):
    """The query of a request; a parameter of another name is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class BodyParameters(BaseModel):
    """The JSON body of a request; values are not converted, and another key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TurnIn(BodyParameters):
    question: str = Field(max_length=20_000)
    answer: str = Field(max_length=200_000)


def plain(value: Any) -> Any:
    """Convert values, including nested values, into JSON types."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


DESCRIBED = "GET /api/v1/openapi.json describes it."


async def json_body(request: Request, service: Service) -> Any:
    """Parse the JSON request body; raise ``UsageError`` for invalid JSON."""
    data = await read_body(request, service.limits.request_kb * 1024)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/json", ""):
        raise UsageError("The body has to be JSON.", "Send Content-Type: application/json.")
    try:
        value = json.loads(data or b"{}")
        if b"\\u" in data:  # an escape alone can be a lone surrogate
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise explain_shortage(error) or error from error
    except (ValueError, RecursionError) as error:
        raise UsageError("The body is no JSON.", DESCRIBED) from error
    return value


async def read_body(request: Request, most: int) -> bytes:
    """Read the request body; raise ``TooLargeError`` beyond ``most`` bytes."""
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > most:
            raise TooLargeError(f"The request has more than {most:,} bytes.")
        pieces.append(piece)
    return b"".join(pieces)


def parse_number(text: str) -> int:
    """Parse a number in a path; raise ``UsageError`` for other text."""
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise UsageError(f"{text!r} is not a whole number.")
    return int(text)
