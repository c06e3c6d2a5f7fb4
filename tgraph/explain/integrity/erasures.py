"""Erasure records: rewritten bundles and batches, removed texts.

An erasure is a chain bundle that lists old and new hashes of rewritten content, so that seals
of rewritten content remain verifiable. Design, section 3.7."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.errors import ErasedTextError, UsageError
from tgraph.explain.integrity.entries import ChainEntry, Problem, term_text, values_by_property
from tgraph.index.sources import Texts
from tgraph.record.bundle import ERASURE
from tgraph.store.base import Store, match_record

_BATCH = f"{v.URN}batch:"
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Erasure:
    """An erasure: document, reason, time (an xsd:dateTime text), and numbers of bundles,
    batches and librarian texts rewritten or removed.

    ``readings`` are further documents that were read from the same bytes, erased with the
    document."""

    erasure: str
    document: str
    reason: str
    time: str
    bundles: int
    batches: int
    texts: int
    readings: tuple[str, ...] = ()

    @property
    def documents(self) -> frozenset[str]:
        """The document in all its readings."""
        return frozenset((self.document, *self.readings))


def format_counts(bundles: int, batches: int, texts: int) -> str:
    """Return erasure counts in words."""
    counts = ((bundles, "bundle", "s"), (batches, "batch", "es"), (texts, "text", "s"))
    return ", ".join(f"{n:,} {noun}{many if n != 1 else ''}" for n, noun, many in counts)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Effects of an erasure: hashes before and after by rewritten resource, and removed texts."""

    what: Erasure
    hashes: Mapping[str, tuple[str, str]]
    texts: frozenset[str]


class Rewritings:
    """Erasures of a chain in order, with current hashes of rewritten content."""

    def __init__(self, store: Store, entries: Iterable[ChainEntry]) -> None:
        erasure_entries = [e for e in entries if e.kind == ERASURE.name]
        erasure_entries.sort(key=lambda entry: _parse_time(entry.time))
        self.all = [read_erasure(store, entry.subject) for entry in erasure_entries]
        self._gone = {
            key: _parse_time(rewriting.what.time)
            for rewriting in self.all
            for key in rewriting.texts
        }

    @property
    def erasures(self) -> tuple[Erasure, ...]:
        return tuple(rewriting.what for rewriting in self.all)

    def hash_of(self, subject: str, sealed: str) -> str:
        """Return the current required hash of a subject; ``sealed`` is its original sealed
        hash."""
        for rewriting in self.all:
            old, new = rewriting.hashes.get(subject, ("", ""))
            if old == sealed:
                sealed = new
        return sealed

    def is_gone(self, key: str, time: str) -> bool:
        """Tell whether an erasure removed a text since its time of need."""
        return key in self._gone and self._gone[key] >= _parse_time(time)

    def was_removed(self, key: str) -> bool:
        """Tell whether any erasure removed the text."""
        return key in self._gone

    def problems(self, entries: Sequence[ChainEntry]) -> Iterator[Problem]:
        """Yield problems for rewritings whose previous hash differs from the sealed hash."""
        sealed = {entry.subject: entry.hash for entry in entries}
        for rewriting in self.all:
            for subject, (old, new) in sorted(rewriting.hashes.items()):
                if sealed.get(subject) != old:
                    detail = (
                        f"{rewriting.what.erasure} says that its hash was {old}, which it was not."
                    )
                    yield Problem("altered", "erasure", subject, detail)
                sealed[subject] = new


def read_erasure(store: Store, bundle: str) -> Rewritten:
    """Return the erasure recorded in an ``erasure`` bundle."""
    graph = NamedNode(bundle)
    subject = v.erasure_iri(bundle.removeprefix(v.bundle_iri("")))
    quads = list(store.match(NamedNode(subject), None, None, graph))
    properties = values_by_property(quads)
    texts = {term_text(quad.object) for quad in quads if quad.predicate == v.tg("removedText")}
    hashes: dict[str, tuple[str, str]] = {}
    for quad in store.match(None, v.tg("rewrote"), None, graph):
        rewrite_properties = values_by_property(store.match(quad.subject, None, None, graph))
        pair = (
            rewrite_properties.get(v.tg("previousHash"), ""),
            rewrite_properties.get(v.tg("hash"), ""),
        )
        hashes[term_text(quad.object)] = pair
    batches = sum(name.startswith(_BATCH) for name in hashes)
    contents = {old for name, (old, _) in hashes.items() if name.startswith(_BATCH)}
    document, *readings = sorted(
        term_text(quad.object) for quad in quads if quad.predicate == v.prov("used")
    ) or [""]
    erasure = Erasure(
        subject,
        document,
        properties.get(v.tg("reason"), ""),
        properties.get(v.prov("endedAtTime"), ""),
        len(hashes) - batches,
        batches,
        len(texts - contents),
        tuple(readings),
    )
    return Rewritten(erasure, hashes, frozenset(texts))


def _erasure_time(erasure: Erasure) -> str:
    return v.in_time(erasure.time)


def erasure_of_document(store: Store, document: str) -> Erasure | None:
    """Return a document's latest erasure, or None without erasures."""
    prefix = v.erasure_iri("")
    erasures = [
        read_erasure(store, term_text(quad.graph_name)).what
        for quad in match_record(store, None, v.prov("used"), NamedNode(document))
        if term_text(quad.subject).startswith(prefix)
    ]
    return max(erasures, key=_erasure_time, default=None)


def last_erasure(store: Store) -> Erasure | None:
    """The newest erasure on record."""
    return max(erasures_since(store, ""), key=_erasure_time, default=None)


def erasures_since(store: Store, time: str) -> list[Erasure]:
    """Return erasures after a time (an xsd:dateTime text), sorted by time."""
    graphs = {q.graph_name for q in match_record(store, None, v.RDF_TYPE, v.tg("Erasure"))}
    erasures = (read_erasure(store, term_text(graph)).what for graph in graphs)
    return sorted(
        (e for e in erasures if _parse_time(e.time) > _parse_time(time)), key=_erasure_time
    )


_ORDERS = v.session_part_iri("orders", "")


def erasure_of_bundle(store: Store, bundle: str) -> Erasure | None:
    """Return the last erasure that rewrote a bundle or removed a text referenced by the bundle.

    Ranked orders cut off by limits are no such texts: no answer rests on ranked orders."""
    erasure_quads = list(match_record(store, None, v.tg("rewrote"), NamedNode(bundle)))
    for quad in store.match(None, v.tg("contentHash"), None, NamedNode(bundle)):
        if not term_text(quad.subject).startswith(_ORDERS):
            erasure_quads += match_record(store, None, v.tg("removedText"), quad.object)
    erasures = (read_erasure(store, term_text(quad.graph_name)).what for quad in erasure_quads)
    return max(erasures, key=_erasure_time, default=None)


def check_whole(store: Store, bundle: str, session: str, what: str = "replayed") -> None:
    """Raise ``UsageError`` if parts of a session were erased, which prevents the action
    ``what``."""
    erasure = erasure_of_bundle(store, bundle)
    if erasure is not None:
        raise UsageError(
            f"The session {session} can't be {what}: text of it was erased on "
            f"{erasure.time[:10]} ({erasure.reason}).",
            "Erased text can't be restored; ask the question again.",
        )


def page_text(texts: Texts) -> Callable[[str, int | None], str]:
    """Return a page text reader; erased pages yield an empty string."""

    def read(document: str, page: int | None) -> str:
        try:
            return texts.of_page(document, page)
        except ErasedTextError:
            return ""

    return read


def _parse_time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:  # an entry that was tampered with
        return _NEVER
