"""The ways in which a scripted server can misbehave."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal as Choice
from typing import get_args

FaultKind = Choice[
    "rate_limit",  # HTTP 429 with Retry-After
    "server_error",  # HTTP 500
    "unauthorised",  # HTTP 401
    "reject_format",  # HTTP 400 while the request has a response_format
    "hang",  # no answer until the client gives up
    "drop",  # the connection ends without an answer
    "not_json",  # HTTP 200 with a page of HTML
    "truncated_json",  # two thirds of the reply, finish_reason "stop"
    "length",  # two thirds of the reply, finish_reason "length"
    "cut_stream",  # the connection ends half-way
    "unfinished",  # a stream that ends in good order, but half-way and without finish_reason
    "prose",  # a sentence instead of JSON
    "unknown_ids",  # ids that the prompt doesn't have
    "empty",  # no text
    "over_long",  # the reply, and 100,000 characters of noise after it
]
FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
PROSE = "I have thought about it and would rather answer in a sentence."
_ID = re.compile(r'("id": ?"|"(?:citations|ids)": ?\[")[^"]*(")')


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, and the requests that it befalls.

    ``step`` limits it to one step (``embeddings`` for embedding calls), ``nth`` to one request
    among those (from 1), ``times`` to the first so many. ``retry_after`` is in seconds.
    """

    kind: FaultKind
    step: str | None = None
    nth: int | None = None
    times: int | None = None
    retry_after: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Fault:
        """A fault written as ``KIND[:STEP[:NTH]]``, for instance ``server_error:extract_graph:2``.

        Raises ``ValueError`` for a kind that doesn't exist.
        """
        kind, _, rest = text.partition(":")
        step, _, nth = rest.partition(":")
        for known in FAULT_KINDS:
            if kind == known:
                return cls(known, step or None, int(nth) if nth else None)
        raise ValueError(f"{kind!r} is not a fault; there are {', '.join(FAULT_KINDS)}.")

    def hits(self, count: int) -> bool:
        """Whether it befalls the request that is the ``count``-th of its step."""
        if self.nth is not None:
            return count == self.nth
        return self.times is None or count <= self.times


class Faults:
    """Counts requests and says which fault befalls each; safe for threads."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._faults = [(fault, [0]) for fault in faults]
        self._lock = threading.Lock()

    def next(self, step: str) -> Fault | None:
        hit: Fault | None = None
        with self._lock:
            for fault, count in self._faults:
                if fault.step in (None, step):
                    count[0] += 1
                    hit = hit or (fault if fault.hits(count[0]) else None)
        return hit


def spoil(text: str, fault: Fault | None) -> tuple[str, str]:
    """The reply's text and finish reason after a fault of content."""
    kind = fault.kind if fault else None
    if kind in ("truncated_json", "length"):
        return text[: len(text) * 2 // 3], "length" if kind == "length" else "stop"
    if kind == "prose":
        return PROSE, "stop"
    if kind == "empty":
        return "", "stop"
    if kind == "unknown_ids":
        return _ID.sub(r"\1made-up\2", text), "stop"
    if kind == "over_long":
        return text + "\n" + "and so on " * 10_000, "stop"
    return text, "stop"
