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
from tgraph.index.standing_knowledge import Properties, distinct_values
from tgraph.store.base import Store
from tgraph.store.statements import Pair


@dataclass(frozen=True, slots=True)
class Original:
    """A text description with IRIs of supporting evidence."""

    text: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Described:
    """An entity or edge with multiple descriptions, ordered by description text."""

    subject: str
    originals: tuple[Original, ...]

    def summary(self, key: str) -> str:
        """Return the IRI of a summary created by the summariser with the given key."""
        parts = ((original.text, *original.evidence) for original in self.originals)
        return v.summary_iri(self.subject, key, (part for item in parts for part in item))


IN_MEMORY = 10_000_000
"""Bytes of pending descriptions that are in memory."""


class PendingDescriptions(Mapping[str, Described]):
    """Subjects with multiple descriptions but no summary, by subject IRI.

    Large amounts are kept in an unshared file in the folder. Call ``close`` afterwards."""

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
        """Close the file and forget all pending descriptions."""
        self._file.close()
        self._places = {}


class Descriptions:
    """Knowledge descriptions of subjects; ``pending`` contains subjects lacking a summary.

    ``key`` identifies the summariser; without a key every description stands for itself. A
    summary is identified by its input: the subject, the descriptions with the supporting
    evidence of each, and the summariser. Knowledge thus remains a function of the standing
    evidence and the recorded summaries, and unchanged input is not summarised again."""

    def __init__(self, store: Store, key: str | None, scratch: Path | None = None) -> None:
        self.pending = PendingDescriptions(scratch)
        self._store = store
        self._key = key

    def describe_subject(self, subject: str, evidence: Sequence[Properties]) -> list[Pair]:
        """Return the subject's description with the underlying summary; no description while
        the summary is pending."""
        descriptions = distinct_values(evidence, "description")
        if self._key is None or len(descriptions) < 2:
            return [(v.tg("description"), descriptions)]
        described = Described(subject, _originals(evidence))
        summary = described.summary(self._key)
        text = text_value(self._store, summary, v.tg("text"))
        if not text:
            self.pending.add(described)
            return []
        return described_by(summary, text)


def described_by(summary: str, text: str) -> list[Pair]:
    """Return knowledge properties of a subject with a summary."""
    return [(v.tg("description"), text), (v.tg("summary"), NamedNode(summary))]


def _originals(evidence: Sequence[Properties]) -> tuple[Original, ...]:
    originals: dict[str, set[str]] = {}
    for item in evidence:
        for term in item.get("description", ()):
            originals.setdefault(term.value, set()).add(item["evidence"][0].value)
    return tuple(Original(text, tuple(sorted(originals[text]))) for text in sorted(originals))
