"""Faults of the scripted server, and replies that a fault spoils."""

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
    "think",  # a thought between tags before the reply
    "think_unopened",  # the same without the tag that opens it
    "think_unclosed",  # nothing but a thought, finish_reason "length"
    "reasoning",  # a thought in reasoning_content beside the reply
    "content_parts",  # content as a list of parts, a thought and the reply (Mistral)
    "reasoning_only",  # a thought there and no reply, finish_reason "length"
    "longer_vectors",  # vectors with one number more (embeddings)
    "other_vectors",  # vectors of another text (embeddings)
]
FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
THOUGHT = 'They ask for JSON. Perhaps {"word": "draft"} would do? Let me think again.'
PROSE = "I have thought about it and would rather answer in a sentence."
_ID = re.compile(r'("id": ?"|"(?:citations|ids)": ?\[")[^"]*(")')


@dataclass(frozen=True, slots=True)
class Fault:
    """A server fault and its affected requests.

    ``step`` limits the fault to one step (``embeddings`` for embedding calls), ``nth`` to one
    request of the step (from 1), ``times`` to the first requests. ``retry_after`` is in
    seconds."""

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
        kind, _, remainder = text.partition(":")
        step, _, nth = remainder.partition(":")
        for fault_kind in FAULT_KINDS:
            if kind == fault_kind:
                return cls(fault_kind, step or None, int(nth) if nth else None)
        raise ValueError(f"{kind!r} is not a fault; there are {', '.join(FAULT_KINDS)}.")

    def hits(self, count: int) -> bool:
        """Return whether the fault affects request number ``count`` of its step."""
        if self.nth is not None:
            return count == self.nth
        return self.times is None or count <= self.times


class Faults:
    """Counts requests and says which fault befalls each; safe for threads."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._faults = [(fault, [0]) for fault in faults]
        self._lock = threading.Lock()

    def take_fault(self, step: str) -> Fault | None:
        hit: Fault | None = None
        with self._lock:
            for fault, count in self._faults:
                if fault.step in (None, step):
                    count[0] += 1
                    hit = hit or (fault if fault.hits(count[0]) else None)
        return hit


_ENDS_BY_LENGTH = ("length", "think_unclosed", "reasoning_only")


def spoil_reply(text: str, fault: Fault | None) -> tuple[str, str]:
    """The reply's text and finish reason after a fault of content."""
    kind = fault.kind if fault else None
    shorter = text[: len(text) * 2 // 3]
    spoilt: dict[str | None, str] = {
        "think": f"<think>\n{THOUGHT}\n</think>\n\n{text}",
        "think_unopened": f"{THOUGHT}\n</think>\n\n{text}",
        "think_unclosed": f"<think>\n{THOUGHT}",
        "reasoning_only": "",
        "truncated_json": shorter,
        "length": shorter,
        "prose": PROSE,
        "empty": "",
        "unknown_ids": _ID.sub(r"\1made-up\2", text),
        "over_long": text + "\n" + "and so on " * 10_000,
    }
    return spoilt.get(kind, text), "length" if kind in _ENDS_BY_LENGTH else "stop"
