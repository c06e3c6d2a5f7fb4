"""Which description knowledge has of a subject: the one that is said of it, or a summary.

A summary is known by what it was made from: the subject, the descriptions with the evidence that
carries each, and the summariser. So knowledge stays a function of the standing evidence and of the
summaries on record, and what did not change is not summarised again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.index.knowledge import Pair, Touched
from tgraph.index.sources import text_value
from tgraph.index.standing import Properties, StandingEvidence, distinct
from tgraph.store.base import Store, select


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


class Descriptions:
    """Says what knowledge says of a subject; ``pending`` are those whose summary is missing.

    ``key`` is the summariser's; without one every description stands for itself.
    """

    def __init__(self, store: Store, key: str | None) -> None:
        self.pending: dict[str, Described] = {}
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
            self.pending[subject] = described
            return []
        return described_by(summary, text)


def described_by(summary: str, text: str) -> list[Pair]:
    """What knowledge says of a subject that has a summary."""
    return [(v.tg("description"), text), (v.tg("summary"), NamedNode(summary))]


def touch_unsummarised(store: Store, touched: Touched) -> None:
    """Touch what has several descriptions side by side: it was derived without a summariser."""
    texts = StandingEvidence(store, lambda chunk: True)
    for row in select(store, "index/several-descriptions", union=False):
        subject = row["subject"]
        assert isinstance(subject, NamedNode)
        triple = texts.triple(subject.value)
        if triple is not None:
            touched.edges[subject.value] = triple
        else:
            touched.entities.add(subject.value)


def _originals(evidence: Sequence[Properties]) -> tuple[Original, ...]:
    found: dict[str, set[str]] = {}
    for item in evidence:
        for term in item.get("description", ()):
            found.setdefault(term.value, set()).add(item["evidence"][0].value)
    return tuple(Original(text, tuple(sorted(found[text]))) for text in sorted(found))
