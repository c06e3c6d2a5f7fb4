"""The readers of graphs, by the names of their formats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tgraph.errors import IngestError, UsageError
from tgraph.extensions.interchange.graphs.base import GraphReader
from tgraph.extensions.interchange.graphs.cores import CoreReader
from tgraph.extensions.interchange.graphs.graphrag import GraphRagReader
from tgraph.extensions.interchange.graphs.lightrag import GraphMlReader, LightRagReader
from tgraph.extensions.interchange.graphs.rdf import RdfReader
from tgraph.extensions.interchange.graphs.rdf_syntax import SYNTAXES
from tgraph.ingest.base import FileLimits
from tgraph.plugins import GRAPH_READERS

FORMATS = ("rdf", *(syntax.name for syntax in SYNTAXES), "graphrag", "lightrag", "graphml", "core")


def graph_readers(
    languages: Sequence[str], base: str, limits: FileLimits, encoding: str
) -> dict[str, GraphReader]:
    """A reader for each of the ``FORMATS``, then the readers of extensions."""
    names = ("", *(syntax.name for syntax in SYNTAXES))
    made: Iterable[GraphReader] = (
        RdfReader(tuple(languages), base, limits, encoding, name) for name in names
    )
    core = CoreReader(tuple(languages), limits, encoding)
    others = (GraphRagReader(), LightRagReader(), GraphMlReader(), core)
    added = GRAPH_READERS.call_all(languages, base, limits, encoding, reserved=FORMATS)
    return {**dict(zip(FORMATS, (*made, *others), strict=True)), **added}


def reader_named(readers: dict[str, GraphReader], name: str) -> GraphReader:
    """The reader of a format. ``UsageError`` for a name that there is not."""
    if name not in readers:
        raise UsageError(f"There is no format {name!r}.", f"Formats: {', '.join(readers)}.")
    return readers[name]


def graphs_at(path: str, readers: Sequence[GraphReader]) -> list[tuple[str, GraphReader]]:
    """What a path leads to: a graph, or those in a folder and below it, sorted, each with who reads
    it. ``IngestError`` where there is none."""
    place = Path(path)
    if not place.exists():
        raise IngestError(path, "There is no such file.")
    if reader := _recognised(path, readers):
        return [(path, reader)]
    files = (each for each in place.rglob("*") if each.is_file() and not _hidden(each, place))
    below = sorted(map(str, files))
    found = [(each, reader) for each in below if (reader := _recognised(each, readers))]
    if not found:
        what = "The folder holds no graph" if place.is_dir() else "It is no graph"
        raise IngestError(
            path, f"{what} of a known format.", f"Name its format: {', '.join(FORMATS)}."
        )
    return found


def _recognised(path: str, readers: Sequence[GraphReader]) -> GraphReader | None:
    return next((reader for reader in readers if reader.recognises(path)), None)


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)
