"""Interchange: graphs and settings of other systems in, knowledge out, publication to a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

from tgraph.extensions import Extension

if TYPE_CHECKING:
    from pathlib import Path

    from click import Command
    from pyoxigraph import Quad
    from rdflib import Graph

    from tgraph.engine.graph import KnowledgeGraph
    from tgraph.engine.index.inputs import Paths
    from tgraph.engine.progress import OnMessage, OnProgress
    from tgraph.explain.trace.values import Trace
    from tgraph.extensions.interchange.graph_import import ImportReport
    from tgraph.extensions.interchange.graphrag_settings import ImportedSettings
    from tgraph.extensions.interchange.knowledge.statements import KnowledgeHash
    from tgraph.extensions.interchange.publishing import Publication
    from tgraph.store.base import Store


def import_graph(
    kg: KnowledgeGraph,
    source: Paths | Graph,
    *,
    title: str = "",
    format: str | None = None,
    languages: Sequence[str] = (),
    base: str = "",
    reinstate: bool = False,
    progress: OnProgress | None = None,
    message: OnMessage | None = None,
) -> ImportReport:
    """Take graphs of others in and publish the graph with them; see ``ImportReport``.

    ``source`` is one path or several, or a graph of rdflib in memory, which is a document of
    N-Triples called after its ``title``. A file is a document, and what the file states rests on
    its lines. The format is recognised unless ``format`` names it; ``languages`` are the languages
    of names, the best first, and ``base`` is what relative IRIs are read against. A line that can't
    be read is in the report and does not stop the others. Raise ``UsageError`` for an unknown
    format.
    """
    from pathlib import Path

    from tgraph.engine.index.inputs import list_paths
    from tgraph.engine.progress import ignore_progress
    from tgraph.extensions.interchange.graph_import import GraphImport, ImportRun
    from tgraph.extensions.interchange.memory_graphs import written_graph

    run = ImportRun(kg.opened.setup(progress or ignore_progress, message))
    if isinstance(source, str | Path | Sequence):
        paths = tuple(list_paths(source))
        return run.run(GraphImport(paths, format, tuple(languages), base, reinstate))
    with written_graph(source, title) as (path, name):
        return run.run(GraphImport((path,), None, tuple(languages), base, reinstate, name))


def export_knowledge(
    kg: KnowledgeGraph,
    output: str | Path | BinaryIO,
    format: str = "trig",
    *,
    sources: bool = False,
) -> None:
    """Write what a graph knows: ``trig``, ``turtle``, ``nquads`` and ``graphml`` to a file or a
    binary stream, ``csv`` (Neo4j), ``graphrag`` (parquet) and ``markdown`` into a new folder.

    ``sources`` adds the quotes that knowledge rests on. Raise ``UsageError`` for a format that
    there is not, and for a place that can't be written to.
    """
    from pathlib import Path

    from tgraph.extensions.interchange.knowledge.formats import write_knowledge
    from tgraph.extensions.interchange.knowledge.statements import knowledge_source

    target = Path(output) if isinstance(output, str) else output
    write_knowledge(knowledge_source(kg.opened), format, target, sources=sources)


def hash_knowledge(kg: KnowledgeGraph) -> KnowledgeHash:
    """Return the RDFC-1.0 hash of what a graph knows, which an export that is imported into a fresh
    collection keeps; communities, reports and summaries are derived and not in the hash."""
    from tgraph.extensions.interchange.knowledge.statements import Knowledge

    return Knowledge(kg.opened.read()).hash()


def publish_graph(
    kg: KnowledgeGraph,
    to: str = "",
    *,
    classic: bool | None = None,
    anew: bool = False,
    progress: OnProgress | None = None,
) -> Publication:
    """Bring a SPARQL 1.1 endpoint up to date with knowledge, sources and record: ``to``, by default
    the endpoint of the settings (``publish``).

    Publishing goes on where the last publication ended, and may be interrupted and repeated.
    ``classic`` leaves triple terms out, None asks the endpoint whether it knows them; ``anew``
    deletes first. Raise ``UsageError`` where the endpoint has something else, ``EndpointError``
    where the endpoint can't be reached.
    """
    from tgraph.engine.progress import ignore_progress
    from tgraph.extensions.interchange.publishing import publish_collection

    return publish_collection(
        kg.opened, to, without_terms=classic, anew=anew, progress=progress or ignore_progress
    )


def import_graphrag_settings(
    path: str | Path, *, accept_settings: bool = False
) -> ImportedSettings:
    """Return the settings of a GraphRAG project as tgraph's, and what has no place there with the
    reasons. ``path`` is settings.yaml (or .json), or the folder of the project. Addresses are
    taken over with ``accept_settings`` alone."""
    from tgraph.extensions.interchange.graphrag_settings import import_graphrag_settings

    return import_graphrag_settings(path, accept_settings=accept_settings)


def _import() -> Command:
    from tgraph.extensions.interchange.import_command import import_

    return import_


def _export() -> Command:
    from tgraph.extensions.interchange.export_command import export

    return export


def _publish() -> Command:
    from tgraph.extensions.interchange.publish_command import publish

    return publish


def _config_import() -> Command:
    from tgraph.extensions.interchange.graphrag_settings_command import import_

    return import_


def _state_in_trustgraph(trace: Trace, store: Store) -> list[Quad]:
    from tgraph.extensions.interchange.trustgraph_sessions import trustgraph_quads

    return trustgraph_quads(trace, store)


EXTENSION = Extension(
    name="interchange",
    commands={
        "import": _import,
        "export": _export,
        "publish": _publish,
        "config import": _config_import,
    },
    vocabularies={"trustgraph": _state_in_trustgraph},
    functions={"export_knowledge": export_knowledge},
)
