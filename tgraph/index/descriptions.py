"""Descriptions of entities and edges, and the summaries that take the place of several."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import SEEK_END
from pathlib import Path
from tempfile import SpooledTemporaryFile

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.index.sources import text_value
from tgraph.index.standing_knowledge import Properties, distinct
from tgraph.store.base import Store
from tgraph.store.statements import Pair


@dataclass(frozen=True, slots=True)
class Original:
    """One description as the texts have it, and the evidence that carries it, by IRI."""

    text: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Described:
    """An entity or an edge with several descriptions, in the order of their texts."""

    subject: str
    originals: tuple[Original, ...]

    def summary(self, key: str) -> str:
        """The IRI of the summary that a summariser with the key makes of this."""
        parts = ((original.text, *original.evidence) for original in self.originals)
        return v.summary_iri(self.subject, key, (part for item in parts for part in item))


IN_MEMORY = 10_000_000
"""Bytes of pending descriptions that are in memory."""


class PendingDescriptions(Mapping[str, Described]):
    """What has several descriptions and no summary, by subject; where there is much of it, in a
    file in the folder that nobody else sees. ``close`` it."""

    def __init__(self, folder: Path | None = None) -> None:
        self._places: dict[str, int] = {}
        place = None if folder is None else str(folder)
        self._file = SpooledTemporaryFile(IN_MEMORY, dir=place)  # noqa: SIM115

    def add(self, described: Described) -> None:
        self._places[described.subject] = self._file.seek(0, SEEK_END)
        originals = [(original.text, original.evidence) for original in described.originals]
        self._file.write(json.dumps(originals).encode() + b"\n")

    def __getitem__(self, subject: str) -> Described:
        self._file.seek(self._places[subject])
        originals = json.loads(self._file.readline())
        return Described(subject, tuple(Original(text, tuple(by)) for text, by in originals))

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def close(self) -> None:
        """They are gone."""
        self._file.close()
        self._places = {}


class Descriptions:
    """Says what knowledge says of a subject; ``pending`` are those whose summary is missing.

    ``key`` is the summariser's; without one every description stands for itself. A summary is known
    by what it was made from: the subject, the descriptions with the evidence that carries each, and
    the summariser. So knowledge stays a function of the standing evidence and of the summaries on
    record, and what did not change is not summarised again.
    """

    def __init__(self, store: Store, key: str | None, scratch: Path | None = None) -> None:
        self.pending = PendingDescriptions(scratch)
        self._store = store
        self._key = key

    def of(self, subject: str, evidence: Sequence[Properties]) -> list[Pair]:
        """The description of the subject, and the summary that it is; nothing while that is
        pending."""
        said = distinct(evidence, "description")
        if self._key is None or len(said) < 2:
            return [(v.tg("description"), said)]
        described = Described(subject, _originals(evidence))
        summary = described.summary(self._key)
        text = text_value(self._store, summary, v.tg("text"))
        if not text:
            self.pending.add(described)
            return []
        return described_by(summary, text)


def described_by(summary: str, text: str) -> list[Pair]:
    """What knowledge says of a subject that has a summary."""
    return [(v.tg("description"), text), (v.tg("summary"), NamedNode(summary))]


def _originals(evidence: Sequence[Properties]) -> tuple[Original, ...]:
    found: dict[str, set[str]] = {}
    for item in evidence:
        for term in item.get("description", ()):
            found.setdefault(term.value, set()).add(item["evidence"][0].value)
    return tuple(Original(text, tuple(sorted(found[text]))) for text in sorted(found))
