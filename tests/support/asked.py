"""Questions that a graph computes an answer to, or refuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.support.corpora import opened
from tgraph.engine.graph import KnowledgeGraph
from tgraph.extensions.interchange import import_graph


def ask(graph: KnowledgeGraph, question: str, mode: str = "sparql") -> str:
    """The text of an answer."""
    return graph.ask(question, mode, history=[]).text


def refuses(graph: KnowledgeGraph, question: str) -> bool:
    """Whether a question has no computed answer."""
    return graph.ask(question, "sparql", history=[]).verdict == "no_evidence"


def check_imported(
    folder: Path, turtle: str, answers: Mapping[str, Sequence[str]], refused: Iterable[str]
) -> None:
    """Assert that a graph of RDF answers questions with texts that have these parts, and refuses
    others."""
    (folder / "graph.ttl").write_text(turtle)
    with opened(folder, create=True) as graph:
        import_graph(graph, [folder / "graph.ttl"])
        for question, parts in answers.items():
            text = ask(graph, question)
            assert all(part in text for part in parts), (question, text)
        for question in refused:
            assert refuses(graph, question), question
