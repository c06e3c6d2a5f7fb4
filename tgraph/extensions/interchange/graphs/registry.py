"""Graph readers, by format."""

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
    rdf_readers: Iterable[GraphReader] = (
        RdfReader(tuple(languages), base, limits, encoding, name) for name in names
    )
    core = CoreReader(tuple(languages), limits, encoding)
    other_readers = (GraphRagReader(limits), LightRagReader(limits), GraphMlReader(limits), core)
    added = GRAPH_READERS.call_all(languages, base, limits, encoding, reserved=FORMATS)
    return {**dict(zip(FORMATS, (*rdf_readers, *other_readers), strict=True)), **added}


def reader_named(readers: dict[str, GraphReader], name: str) -> GraphReader:
    """Return the reader of a format.

    Raise ``UsageError`` if the format is unknown."""
    if name not in readers:
        raise UsageError(f"There is no format {name!r}.", f"Formats: {', '.join(readers)}.")
    return readers[name]


def graphs_at(path: str, readers: Sequence[GraphReader]) -> list[tuple[str, GraphReader]]:
    """Return graphs found at a path (file or folder contents, sorted), each paired with a
    reader.

    Raise ``IngestError`` if no graph exists."""
    place = Path(path)
    if not place.exists():
        raise IngestError(path, "There is no such file.")
    if reader := _find_reader(path, readers):
        return [(path, reader)]
    files = (file for file in place.rglob("*") if file.is_file() and not _is_hidden(file, place))
    below = sorted(map(str, files))
    readable_graphs = [(file, reader) for file in below if (reader := _find_reader(file, readers))]
    if not readable_graphs:
        problem = "The folder holds no graph" if place.is_dir() else "It is no graph"
        raise IngestError(
            path, f"{problem} of a known format.", f"Name its format: {', '.join(FORMATS)}."
        )
    return readable_graphs


def _find_reader(path: str, readers: Sequence[GraphReader]) -> GraphReader | None:
    return next((reader for reader in readers if reader.recognises(path)), None)


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)
