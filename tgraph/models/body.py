"""A chat request as it is sent and as it is hashed, with each message written as JSON once.

Prompts are long, and writing one takes as long as a third of the HTTP around it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tgraph.models.base import canonical_json

_MESSAGES = "messages"


@dataclass(frozen=True, slots=True)
class Body:
    """The request: ``sent`` with its members in their order, which tells a server in which order
    to fill a schema, and ``canonical`` as ``canonical_json`` has it."""

    request: Mapping[str, Any]
    sent: str
    canonical: str


def write_body(request: Mapping[str, Any]) -> Body:
    """The JSON of a request whose messages have texts for members."""
    texts = [{k: _json(text) for k, text in each.items()} for each in request.get(_MESSAGES, ())]
    return Body(
        request,
        _object(request.items(), [_members(each.items()) for each in texts], _json),
        _object(
            sorted(request.items()),
            [_members(sorted(each.items())) for each in texts],
            canonical_json,
        ),
    )


def _object(
    members: Iterable[tuple[str, Any]], messages: Iterable[str], write: Callable[[object], str]
) -> str:
    written = f"[{','.join(messages)}]"
    return _members(
        (name, written if name == _MESSAGES else write(value)) for name, value in members
    )


def _members(members: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{_json(name)}:{value}" for name, value in members) + "}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
