"""Graphs that tests make: of texts in a folder, without HTTP, and repeatable where they must be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import tgraph
from tgraph.engine.components import Components
from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.index.run import IndexReport
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel, ticking_clock


def write(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """The files that hold the texts."""
    for name, text in texts.items():
        (folder / name).write_text(text)
    return [folder / name for name in texts]


def opened(
    folder: Path,
    model: Any = None,
    settings: Mapping[str, object] | None = None,
    *,
    create: bool = False,
    **options: Any,
) -> KnowledgeGraph:
    """The graph in the folder, with that model or none and hashed vectors."""
    parts = Components(
        load_settings(None, settings or {}),
        folder / "cache",
        chat=model,
        embedder=HashingEmbedder(),
    )
    return tgraph.open(folder / "graph", create=create, settings=settings, parts=parts, **options)


@contextmanager
def made(
    folder: Path, texts: Mapping[str, str], *, scripted: bool = False, **options: Any
) -> Iterator[tuple[KnowledgeGraph, ScriptedModel | None]]:
    """A graph of the texts, with a scripted model or none, whose clock ticks evenly and whose UUIDs
    are counted."""
    ids, clock = count(), ticking_clock()
    model = ScriptedModel(clock=clock) if scripted else None
    with opened(
        folder,
        model,
        create=True,
        clock=clock,
        uuid=lambda: f"00000000-0000-4000-8000-{next(ids):012d}",
        **options,
    ) as graph:
        assert not graph.index(write(folder, texts)).failed
        yield graph, model


class Corpus:
    """A folder of documents and a graph of them; ``said`` are the messages of its runs."""

    def __init__(self, folder: Path, chat: Any = None, **settings: object) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.chat = chat
        self.settings = {name.replace("__", "."): value for name, value in settings.items()}
        self.said: list[str] = []

    def open(self, **settings: object) -> KnowledgeGraph:
        """The graph, with these settings beside its own."""
        own = {**self.settings, **settings}
        return opened(self.folder, self.chat, own, create=True, message=self.said.append)

    def index(self, texts: Mapping[str, str]) -> IndexReport:
        with self.open() as graph:
            return graph.index(write(self.folder, texts))


@contextmanager
def indexed(folder: Path, texts: Mapping[str, str]) -> Iterator[KnowledgeGraph]:
    """The graph of a folder with these documents."""
    corpus = Corpus(folder)
    corpus.index(texts)
    with corpus.open() as graph:
        yield graph
