"""The JSON of index runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator

from tgraph.engine.json_output import Output
from tgraph.errors import IngestError
from tgraph.model import ReadingReport, Usage

if TYPE_CHECKING:
    from tgraph.engine.index.indexed_paths import IndexedPath
    from tgraph.engine.index.run import IndexReport


class FailureOut(Output):
    """A file that could not be taken in, and the reason."""

    path: str
    reason: str


def _read_failures(errors: Sequence[IngestError]) -> tuple[FailureOut, ...]:
    return tuple(FailureOut(path=error.path, reason=str(error)) for error in errors)


class RenamingOut(Output):
    """A file with another path and the same content."""

    before: str
    after: str


def _read_paths(indexed: Sequence[IndexedPath]) -> tuple[str, ...]:
    return tuple(each.path for each in indexed)


class AbsentOut(Output):
    """Documents that stand and whose files are gone from a folder."""

    folder: str
    paths: Annotated[tuple[str, ...], BeforeValidator(_read_paths)]
    is_folder_empty: bool


class IndexOut(Output):
    """What ``tgraph index --json`` prints."""

    root: str = ""
    run: str
    indexed: tuple[str, ...]
    unchanged: tuple[str, ...]
    superseded: tuple[str, ...]
    retracted: tuple[str, ...]
    erased: tuple[str, ...]
    failed: Annotated[tuple[FailureOut, ...], BeforeValidator(_read_failures)]
    chunks: int
    entities: int
    relationships: int
    claims: int
    merged: int
    communities: int
    isolated: int
    reports: int
    dropped: dict[str, int]
    usage: Usage
    generation: int
    readings: dict[str, ReadingReport]
    renamed: tuple[RenamingOut, ...] = ()
    absent: tuple[AbsentOut, ...] = ()
    pruned: tuple[str, ...] = ()
    questioned: tuple[str, ...] = ()


def index_json(report: IndexReport, root: str) -> dict[str, Any]:
    """Return the JSON object of an index run on the graph in the folder ``root``."""
    return IndexOut.model_validate(report).model_dump(mode="json") | {"root": root}
