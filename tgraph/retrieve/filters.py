"""Filters restricting a question to certain documents and entity types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fnmatch import fnmatchcase

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.errors import UsageError, nearest_names
from tgraph.index.sources import (
    Texts,
    chunks_of_document,
    page_of_chunk,
    read_document_dates,
)
from tgraph.ingest.document_dates import DateRange, parse_date_span
from tgraph.store.base import Graph, Store, text_of


@dataclass(frozen=True, slots=True)
class Filters:
    """Question restrictions limiting allowed sources; empty documents, empty types and None
    filter nothing.

    ``documents`` contains IRIs, paths, path ends or glob patterns; any match suffices.
    ``since`` and ``until`` are inclusive dates (``YYYY``, ``YYYY-MM`` or ``YYYY-MM-DD``),
    compared with the document's own date if understood when indexed, otherwise with the
    accession day. ``types`` contains entity types: remaining are entities of these types, edges and
    claims containing such an entity, and chunks mentioning such an entity. ``languages``
    contains document languages (BCP 47): the document's stated language counts, otherwise the
    language detected in its text. ``valid_at`` is a date in such a form: claims not holding at
    that date are omitted, and facts dated only by such claims (``tgraph.retrieve.validity``)."""

    documents: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    types: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    valid_at: str | None = None

    def __bool__(self) -> bool:
        dated = any(limit is not None for limit in (self.since, self.until, self.valid_at))
        return bool(self.documents or self.types or self.languages) or dated

    @property
    def parameters(self) -> Mapping[str, str]:
        """Return active filters by recorded parameter name."""
        filter_texts = {
            "filter-document": _format_json_list(self.documents),
            "filter-since": self.since or "",
            "filter-until": self.until or "",
            "filter-type": _format_json_list(self.types),
            "filter-language": _format_json_list(self.languages),
            "filter-valid-at": self.valid_at or "",
        }
        return {name: text for name, text in filter_texts.items() if text}


def _format_json_list(values: tuple[str, ...]) -> str:
    """Return a JSON list, since patterns may contain any separator; empty text for an empty
    tuple."""
    return json.dumps(values, ensure_ascii=False) if values else ""


NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A standing document: IRI, paths, days."""

    iri: str
    paths: tuple[str, ...]
    days: DateRange


def admitted_documents(filters: Filters, store: Store) -> set[str]:
    """Return IRIs of standing documents admitted by the filters; possibly empty.

    Raise ``UsageError`` for a missing document or an invalid date."""
    standing_documents = list(_read_documents(store))
    matching_iris = (
        _match_documents(filters.documents, standing_documents)
        if filters.documents
        else {d.iri for d in standing_documents}
    )
    first = _parse_date_span(filters.since)[0] if filters.since is not None else date.min
    last = _parse_date_span(filters.until)[1] if filters.until is not None else date.max
    return {
        d.iri
        for d in standing_documents
        if d.iri in matching_iris and d.days[0] <= last and d.days[1] >= first
    }


def in_languages(
    documents: Iterable[str], languages: Iterable[str], store: Store, texts: Texts
) -> set[str]:
    """Return documents written in any requested language.

    Raise ``UsageError`` for a language without documents."""
    documents_by_language: dict[str, set[str]] = {}
    for document in documents:
        documents_by_language.setdefault(_read_language(document, store, texts), set()).add(
            document
        )
    requested_languages = {_primary_subtag(language) for language in languages}
    for language in sorted(requested_languages - documents_by_language.keys()):
        raise UsageError(
            f"No document is in the language {language!r}.",
            nearest_names(language, sorted(documents_by_language), lead="The languages are"),
        )
    return {
        document for language in requested_languages for document in documents_by_language[language]
    }


def _read_language(document: str, store: Store, texts: Texts) -> str:
    for stated_language in _read_texts(store, NamedNode(document), v.dcterms("language")):
        return _primary_subtag(stated_language)
    from tgraph.ingest.languages import UNDETERMINED, language_of

    number = page_of_chunk(next(chunks_of_document(store, document), document))
    read: str = language_of(texts.of_page(document, number))
    return UNDETERMINED if read == "other" else read


def _primary_subtag(language: str) -> str:
    """Return a language tag's primary language, without country or script."""
    return re.split("[-_]", language.strip().casefold())[0]


def admitted_entities(filters: Filters, store: Store) -> set[str] | None:
    """Return IRIs of entities with a filtered type; None without type filter.

    Raise ``UsageError`` for a type without entities."""
    return set(entities_of_types(filters.types, store)) if filters.types else None


def entities_of_types(wanted_types: Iterable[str], store: Store) -> frozenset[str]:
    """Return entity IRIs matching any requested type.

    Raise ``UsageError`` for a type without entities."""
    types = _classes_by_label(store)
    entities: set[str] = set()
    for type_name in wanted_types:
        classes = types.get(type_name.casefold().strip())
        if classes is None:
            raise UsageError(
                f"No entity is of the type {type_name!r}.",
                nearest_names(type_name, types, lead="The types are"),
            )
        for node in classes:
            quads = store.match(None, v.RDF_TYPE, node, v.KNOWLEDGE_GRAPH)
            entities.update(q.subject.value for q in quads if isinstance(q.subject, NamedNode))
    return frozenset(entities)


def valid_span(filters: Filters) -> tuple[tuple[int, int, int], tuple[int, int, int]] | None:
    """Return the day span meant by ``valid_at``; None without the filter.

    Raise ``UsageError`` for an invalid date."""
    if filters.valid_at is None:
        return None
    first, last = _parse_date_span(filters.valid_at)
    return first.timetuple()[:3], last.timetuple()[:3]


# --- documents ------------------------------------------------------------------------------------


def _read_documents(store: Store) -> Iterator[KnownDocument]:
    standing: dict[str, list[NamedNode]] = {}
    for quad in store.match(None, v.prov("specializationOf"), None, v.SOURCE_GRAPH):
        withdrawn = store.match(quad.subject, v.prov("invalidatedAtTime"), None, v.SOURCE_GRAPH)
        if next(withdrawn, None) is None and isinstance(quad.subject, NamedNode):
            standing.setdefault(text_of(quad.object), []).append(quad.subject)
    for document, accessions in sorted(standing.items()):
        paths = [p for a in accessions for p in _read_texts(store, a, v.tg("path"))]
        yield KnownDocument(
            document, tuple(sorted(paths)), _document_days(store, document, accessions)
        )


def _document_days(store: Store, document: str, accessions: Sequence[NamedNode]) -> DateRange:
    """Return the days of the document's own date, as exact as stated, otherwise the accession
    days.

    Graphs from before calendar dates were recorded have the text alone; of these ISO dates count,
    as they did then, so that recorded sessions replay."""
    for date_text in read_document_dates(store, document):
        if days := parse_date_span(date_text):
            return days
    accession_times = [
        t for a in accessions for t in _read_texts(store, a, v.prov("generatedAtTime"))
    ]
    taken = sorted(datetime.fromisoformat(text).date() for text in accession_times)
    return taken[0], taken[-1]


def _match_documents(wanted: Iterable[str], known: Sequence[KnownDocument]) -> set[str]:
    matching_iris: set[str] = set()
    for name in wanted:
        fitting = {document.iri for document in known if _matches_document(name, document)}
        if not fitting:
            paths = [path for document in known for path in document.paths]
            names = {path.rpartition("/")[2]: path for path in paths} | {p: p for p in paths}
            raise UsageError(
                f"No document that stands is called {name!r}.", nearest_names(name, names)
            )
        matching_iris |= fitting
    return matching_iris


def _matches_document(name: str, document: KnownDocument) -> bool:
    if name == document.iri:
        return True
    pattern = name.removeprefix("./")
    return any(
        path == name
        or fnmatchcase(path, pattern)
        or fnmatchcase(path, f"*/{_strip_leading_slashes(pattern)}")
        for path in document.paths
    )


def _strip_leading_slashes(pattern: str) -> str:
    return pattern.lstrip("/")


# --- types and dates ------------------------------------------------------------------------------


def _classes_by_label(store: Store) -> dict[str, list[NamedNode]]:
    """Return entity classes by lower-case label."""
    classes: dict[str, list[NamedNode]] = {}
    for quad in store.match(None, v.RDF_TYPE, v.tg("EntityType"), v.KNOWLEDGE_GRAPH):
        assert isinstance(quad.subject, NamedNode)
        for label in _read_texts(store, quad.subject, v.RDFS_LABEL, v.KNOWLEDGE_GRAPH):
            classes.setdefault(label.casefold(), []).append(quad.subject)
    return classes


def _parse_date_span(text: str) -> DateRange:
    """Return the day span covered by a date text: first day, last day."""
    days = parse_date_span(text)
    if days is None:
        raise UsageError(f"{text!r} is no date.", "Write it as YYYY, YYYY-MM or YYYY-MM-DD.")
    return days


def _read_texts(
    store: Store, subject: NamedNode, predicate: NamedNode, graph: Graph = v.SOURCE_GRAPH
) -> list[str]:
    return [text_of(q.object) for q in store.match(subject, predicate, None, graph)]
