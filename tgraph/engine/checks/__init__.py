"""Checks of a graph: integrity of the record, knowledge derived anew, and health.

A health check yields findings: what is wrong, and how it is mended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tgraph.errors import TgraphError

PATIENCE = 300.0
"""Seconds to wait for a writer, who should be done in one."""
Status = Literal["ok", "note", "mended", "bad"]


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """A health check's finding; ``bad`` needs mending, ``mended`` has been mended, ``note`` is
    worth knowing. ``remedy`` says how ``detail`` is mended."""

    status: Status
    subject: str
    detail: str
    remedy: str = ""

    @classmethod
    def of_error(cls, subject: str, error: TgraphError, remedy: str = "") -> HealthFinding:
        """Return the finding of an error, with another remedy if given."""
        return cls("bad", subject, error.message, remedy or error.remedy)


HealthCheck = Callable[[Path | None, str | None], Iterator[HealthFinding]]
"""A function that yields the findings of a check, given the graph's folder (None without a graph)
and the name of a collection."""
