"""Filters: which documents and which types of entity a question may be answered from."""

from __future__ import annotations

import json
import re
from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fnmatch import fnmatchcase

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.errors import UsageError, nearest_names
from tgraph.index.sources import Texts, chunks_of_document, page_of_chunk
from tgraph.store.base import Store, text_of

UNDETERMINED = "und"
"""What BCP 47 calls a language that isn't known."""

_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?(?:[T ].*)?")
Span = tuple[date, date]


@dataclass(frozen=True, slots=True)
class Filters:
    """What a question may be answered from; no documents, no types and None filter nothing.

    ``documents`` are IRIs, paths, ends of paths or glob patterns, any of which may hold. ``since``
    and ``until`` are dates (``YYYY``, ``YYYY-MM`` or ``YYYY-MM-DD``), both inclusive: a document's
    own date counts where it states one in such a form, else the day on which it was taken in.
    ``types`` are types of entities: what is left are entities of one of them, edges and claims that
    one of these stands in, and chunks that speak of one. ``languages`` are those of documents (BCP
    47): what a document states counts, else what its text reads as. ``valid_at`` is a date in such
    a form: claims that don't hold then are left out, and facts that such claims alone date
    (``tgraph.retrieve.validity``).
    """

    documents: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    types: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    valid_at: str | None = None

    def __bool__(self) -> bool:
        dated = any(each is not None for each in (self.since, self.until, self.valid_at))
        return bool(self.documents or self.types or self.languages) or dated

    @property
    def parameters(self) -> Mapping[str, str]:
        """The filters by the names under which they are on record."""
        said = {
            "filter-document": _listed(self.documents),
            "filter-since": self.since or "",
            "filter-until": self.until or "",
            "filter-type": _listed(self.types),
            "filter-language": _listed(self.languages),
            "filter-valid-at": self.valid_at or "",
        }
        return {name: text for name, text in said.items() if text}


def _listed(values: tuple[str, ...]) -> str:
    """A JSON list, since a pattern may contain any separator; nothing for none."""
    return json.dumps(values, ensure_ascii=False) if values else ""


NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A standing document: its IRI, the paths it stands under, and its days."""

    iri: str
    paths: tuple[str, ...]
    days: Span


def admitted_documents(filters: Filters, store: Store) -> set[str]:
    """The standing documents within the filters, by IRI; perhaps none.

    ``UsageError`` for a document that is not there, and for what is no date.
    """
    known = list(_documents(store))
    named = _named(filters.documents, known) if filters.documents else {d.iri for d in known}
    first = _span(filters.since)[0] if filters.since is not None else date.min
    last = _span(filters.until)[1] if filters.until is not None else date.max
    return {d.iri for d in known if d.iri in named and d.days[0] <= last and d.days[1] >= first}


def in_languages(
    documents: Iterable[str], languages: Iterable[str], store: Store, texts: Texts
) -> set[str]:
    """The documents in one of the languages. ``UsageError`` for one that none of them is in."""
    found: dict[str, set[str]] = {}
    for document in documents:
        found.setdefault(_language(document, store, texts), set()).add(document)
    wanted = {_primary(language) for language in languages}
    for language in sorted(wanted - found.keys()):
        raise UsageError(
            f"No document is in the language {language!r}.",
            nearest_names(language, sorted(found), lead="The languages are"),
        )
    return {document for language in wanted for document in found[language]}


def _language(document: str, store: Store, texts: Texts) -> str:
    for stated in _texts(store, NamedNode(document), v.dcterms("language")):
        return _primary(stated)
    from tgraph.extract.language import language_of

    number = page_of_chunk(next(chunks_of_document(store, document), document))
    read: str = language_of(texts.of_page(document, number))
    return UNDETERMINED if read == "other" else read


def _primary(language: str) -> str:
    """The language of a tag, without country and script."""
    return re.split("[-_]", language.strip().casefold())[0]


def admitted_entities(filters: Filters, store: Store) -> set[str] | None:
    """The entities of the types, by IRI; None where no type is asked for. ``UsageError`` for a type
    that no entity has."""
    return set(entities_of_types(filters.types, store)) if filters.types else None


def entities_of_types(wanted_types: Iterable[str], store: Store) -> frozenset[str]:
    """The entities of one of the types, by IRI. ``UsageError`` for a type that no entity has."""
    types = _types(store)
    found: set[str] = set()
    for wanted in wanted_types:
        classes = types.get(wanted.casefold().strip())
        if classes is None:
            raise UsageError(
                f"No entity is of the type {wanted!r}.",
                nearest_names(wanted, types, lead="The types are"),
            )
        for node in classes:
            quads = store.match(None, v.RDF_TYPE, node, v.KNOWLEDGE_GRAPH)
            found.update(q.subject.value for q in quads if isinstance(q.subject, NamedNode))
    return frozenset(found)


def valid_span(filters: Filters) -> tuple[tuple[int, int, int], tuple[int, int, int]] | None:
    """The days that ``valid_at`` means; None where nothing is asked. ``UsageError`` for no date."""
    if filters.valid_at is None:
        return None
    first, last = _span(filters.valid_at)
    return first.timetuple()[:3], last.timetuple()[:3]


# --- documents ------------------------------------------------------------------------------------


def _documents(store: Store) -> Iterator[KnownDocument]:
    standing: dict[str, list[NamedNode]] = {}
    for quad in store.match(None, v.prov("specializationOf"), None, v.SOURCE_GRAPH):
        withdrawn = store.match(quad.subject, v.prov("invalidatedAtTime"), None, v.SOURCE_GRAPH)
        if next(withdrawn, None) is None and isinstance(quad.subject, NamedNode):
            standing.setdefault(text_of(quad.object), []).append(quad.subject)
    for document, accessions in sorted(standing.items()):
        paths = [p for a in accessions for p in _texts(store, a, v.tg("path"))]
        yield KnownDocument(document, tuple(sorted(paths)), _days(store, document, accessions))


def _days(store: Store, document: str, accessions: Sequence[NamedNode]) -> Span:
    """The document's own date, as exact as it is, else the days on which it was taken in."""
    for stated in _texts(store, NamedNode(document), v.dcterms("date")):
        if _DATE.fullmatch(stated):
            try:
                return _span(stated)
            except UsageError:
                continue
    taken = [t for a in accessions for t in _texts(store, a, v.prov("generatedAtTime"))]
    days = sorted(datetime.fromisoformat(text).date() for text in taken)
    return days[0], days[-1]


def _named(wanted: Iterable[str], known: Sequence[KnownDocument]) -> set[str]:
    found: set[str] = set()
    for name in wanted:
        fitting = {document.iri for document in known if _fits(name, document)}
        if not fitting:
            paths = [path for document in known for path in document.paths]
            names = {path.rpartition("/")[2]: path for path in paths} | {p: p for p in paths}
            raise UsageError(
                f"No document that stands is called {name!r}.", nearest_names(name, names)
            )
        found |= fitting
    return found


def _fits(name: str, document: KnownDocument) -> bool:
    if name == document.iri:
        return True
    pattern = name.removeprefix("./")
    return any(
        path == name or fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{_literal(pattern)}")
        for path in document.paths
    )


def _literal(pattern: str) -> str:
    return pattern.lstrip("/")


# --- types and dates ------------------------------------------------------------------------------


def _types(store: Store) -> dict[str, list[NamedNode]]:
    """The classes of entities by their label in lower case."""
    found: dict[str, list[NamedNode]] = {}
    for quad in store.match(None, v.RDF_TYPE, v.tg("EntityType"), v.KNOWLEDGE_GRAPH):
        assert isinstance(quad.subject, NamedNode)
        for label in _texts(store, quad.subject, v.RDFS_LABEL):
            found.setdefault(label.casefold(), []).append(quad.subject)
    return found


def _span(text: str) -> Span:
    """The first and last day that a date means."""
    match = _DATE.fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError
        year, month, day = (int(part) if part else 0 for part in match.groups())
        last = day or monthrange(year, month or 12)[1]
        return date(year, month or 1, day or 1), date(year, month or 12, last)
    except ValueError as error:
        raise UsageError(
            f"{text!r} is no date.", "Write it as YYYY, YYYY-MM or YYYY-MM-DD."
        ) from error


def _texts(store: Store, subject: NamedNode, predicate: NamedNode) -> list[str]:
    return [text_of(q.object) for q in store.match(subject, predicate, None, None)]
