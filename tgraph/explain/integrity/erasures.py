"""What erasures have left: which bundles and batches they rewrote, and which texts are gone.

An erasure is a bundle of the chain that names the old and the new hash of everything that it
rewrote, so that the seal of what was rewritten can still be checked. Design, section 3.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.errors import ErasedTextError, UsageError
from tgraph.explain.integrity.entries import ChainEntry, Problem, stated, term_text
from tgraph.index.sources import Texts
from tgraph.record.bundle import ERASURE
from tgraph.store.base import Store

_BATCH = f"{v.URN}batch:"
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Erasure:
    """One erasure: of which document, why, when (an xsd:dateTime text), and how many bundles,
    batches and texts of the librarian it rewrote or removed."""

    erasure: str
    document: str
    reason: str
    time: str
    bundles: int
    batches: int
    texts: int


def counted(bundles: int, batches: int, texts: int) -> str:
    """How much was erased, in words."""
    counts = ((bundles, "bundle", "s"), (batches, "batch", "es"), (texts, "text", "s"))
    return ", ".join(f"{n:,} {what}{many if n != 1 else ''}" for n, what, many in counts)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What an erasure did: the hashes before and after by what was rewritten, and the texts."""

    what: Erasure
    hashes: Mapping[str, tuple[str, str]]
    texts: frozenset[str]


class Rewritings:
    """The erasures of a chain, in their order: what is sealed under another hash than at first."""

    def __init__(self, store: Store, entries: Iterable[ChainEntry]) -> None:
        kept = [e for e in entries if e.kind == ERASURE.name]
        kept.sort(key=lambda entry: _moment(entry.time))
        self.all = [read_erasure(store, entry.subject) for entry in kept]
        self._gone = {key: _moment(done.what.time) for done in self.all for key in done.texts}

    @property
    def erasures(self) -> tuple[Erasure, ...]:
        return tuple(done.what for done in self.all)

    def hash_of(self, subject: str, sealed: str) -> str:
        """The hash that the subject must have now; ``sealed`` is what it was sealed with."""
        for done in self.all:
            old, new = done.hashes.get(subject, ("", ""))
            if old == sealed:
                sealed = new
        return sealed

    def is_gone(self, key: str, time: str) -> bool:
        """Whether a text that was needed at that time has been removed since."""
        return key in self._gone and self._gone[key] >= _moment(time)

    def was_removed(self, key: str) -> bool:
        """Whether an erasure removed the text at any time."""
        return key in self._gone

    def problems(self, entries: Sequence[ChainEntry]) -> Iterator[Problem]:
        """Rewritings that do not begin with the hash that what they rewrote had."""
        sealed = {entry.subject: entry.hash for entry in entries}
        for done in self.all:
            for subject, (old, new) in sorted(done.hashes.items()):
                if sealed.get(subject) != old:
                    detail = f"{done.what.erasure} says that its hash was {old}, which it was not."
                    yield Problem("altered", "erasure", subject, detail)
                sealed[subject] = new


def read_erasure(store: Store, bundle: str) -> Rewritten:
    """The erasure that a bundle of the kind ``erasure`` records."""
    graph = NamedNode(bundle)
    subject = v.erasure_iri(bundle.removeprefix(v.bundle_iri("")))
    quads = list(store.match(NamedNode(subject), None, None, graph))
    said = stated(quads)
    texts = {term_text(quad.object) for quad in quads if quad.predicate == v.tg("removedText")}
    hashes: dict[str, tuple[str, str]] = {}
    for quad in store.match(None, v.tg("rewrote"), None, graph):
        told = stated(store.match(quad.subject, None, None, graph))
        pair = told.get(v.tg("previousHash"), ""), told.get(v.tg("hash"), "")
        hashes[term_text(quad.object)] = pair
    batches = sum(name.startswith(_BATCH) for name in hashes)
    contents = {old for name, (old, _) in hashes.items() if name.startswith(_BATCH)}
    what = Erasure(
        subject,
        said.get(v.prov("used"), ""),
        said.get(v.tg("reason"), ""),
        said.get(v.prov("endedAtTime"), ""),
        len(hashes) - batches,
        batches,
        len(texts - contents),
    )
    return Rewritten(what, hashes, frozenset(texts))


def _time(erasure: Erasure) -> str:
    return v.in_time(erasure.time)


def erasure_of_document(store: Store, document: str) -> Erasure | None:
    """The last erasure of a document, None where there has been none."""
    prefix = v.erasure_iri("")
    found = [
        read_erasure(store, term_text(quad.graph_name)).what
        for quad in store.match(None, v.prov("used"), NamedNode(document), None)
        if term_text(quad.subject).startswith(prefix)
    ]
    return max(found, key=_time, default=None)


def last_erasure(store: Store) -> Erasure | None:
    """The newest erasure on record."""
    return max(erasures_since(store, ""), key=_time, default=None)


def erasures_since(store: Store, time: str) -> list[Erasure]:
    """The erasures after a time (an xsd:dateTime text), in their order."""
    graphs = {quad.graph_name for quad in store.match(None, v.RDF_TYPE, v.tg("Erasure"), None)}
    found = (read_erasure(store, term_text(graph)).what for graph in graphs)
    return sorted((e for e in found if _moment(e.time) > _moment(time)), key=_time)


_ORDERS = v.session_part_iri("orders", "")


def erasure_of_bundle(store: Store, bundle: str) -> Erasure | None:
    """The last erasure that rewrote a bundle, or removed a text that it refers to; what limits cut
    off in a session, which no answer rests on, is no such text."""
    done = list(store.match(None, v.tg("rewrote"), NamedNode(bundle), None))
    for quad in store.match(None, v.tg("contentHash"), None, NamedNode(bundle)):
        if not term_text(quad.subject).startswith(_ORDERS):
            done += store.match(None, v.tg("removedText"), quad.object, None)
    found = (read_erasure(store, term_text(quad.graph_name)).what for quad in done)
    return max(found, key=_time, default=None)


def check_whole(store: Store, bundle: str, session: str, what: str = "replayed") -> None:
    """``UsageError`` where parts of a session have been erased, so that it can't be asked again:
    ``what`` can't be done with it."""
    erasure = erasure_of_bundle(store, bundle)
    if erasure is not None:
        raise UsageError(
            f"The session {session} can't be {what}: text of it was erased on "
            f"{erasure.time[:10]} ({erasure.reason}).",
            "What has been erased stays erased; ask the question again.",
        )


def page_text(texts: Texts) -> Callable[[str, int | None], str]:
    """The stored text of a page, empty where it was erased."""

    def read(document: str, page: int | None) -> str:
        try:
            return texts.of_page(document, page)
        except ErasedTextError:
            return ""

    return read


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:  # an entry that was tampered with
        return _NEVER
