"""The catalogue: the classes, tables and properties of knowledge, with counts and values.

It is a function of the standing state alone, counted by a few queries that group in the store, so
that memory here is bounded by the numbers of properties, tables and rows. What only sentences state
has no end of properties, and is counted only for who wants to see all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nsmallest
from itertools import groupby
from operator import attrgetter
from typing import Literal as Choice

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.extract.table_facts import NAMELESS, class_of_title, singular_of
from tgraph.index.sources import document_of_chunk, document_titles, standing_documents
from tgraph.ingest.table_values import split_unit
from tgraph.model import Object
from tgraph.resources import common_words, word_set
from tgraph.store.base import Store, Term, iterate_rows, select_rows, text_of

ValueKind = Choice["number", "year", "date", "text", "entity", "other"]
ClassKind = Choice["type", "table", "name"]

MOST_VALUES = 50
"""Values of a property that the catalogue shows: the most frequent."""

LONGEST_VALUE = 80
"""The characters of a value that may stand for others in the catalogue."""

LEAST_NAMESAKES = 2
"""The members from which a word that begins names is a class."""

_ROW = v.type_iri(NAMELESS)
_VAGUE = frozenset((v.type_iri("thing"), v.type_iri("concept"), _ROW))
_NUMBERS = frozenset(
    v.xsd(name).value
    for name in ("integer", "decimal", "double", "float", "int", "long", "short", "byte")
) | {v.xsd(f"{sign}Integer").value for sign in ("nonNegative", "positive", "negative")}
_EXACT = frozenset(v.xsd(name).value for name in ("integer", "decimal", "gYear"))
"""Datatypes whose values have one order and add up without rounding."""

_KINDS: Mapping[str, ValueKind] = {
    "entity": "entity",
    v.xsd("gYear").value: "year",
    v.xsd("date").value: "date",
    v.xsd("dateTime").value: "date",
    v.xsd("gYearMonth").value: "date",
    v.xsd("string").value: "text",
    f"{v.RDF}langString": "text",
    **dict.fromkeys(_NUMBERS, "number"),
}


_TRUTHS = tuple(
    tuple(Literal(value, datatype=v.xsd(kind)) for value in pair)
    for kind, *pair in (("boolean", "false", "true"), ("integer", "0", "1"))
)
"""The values that say no and yes."""


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A value of a property, with the number of statements that have the value."""

    value: Object
    label: str
    statements: int


@dataclass(frozen=True, slots=True)
class KnownProperty:
    """A property of knowledge: how often it is stated, of how many subjects, with which values.

    ``kinds`` counts its statements by the kind of the value, the most frequent first; ``values``
    are the most frequent of its ``distinct`` values. ``is_structured`` says that a column of a
    table, or an imported graph, states it: what only sentences state has no end of properties.
    ``synonyms`` are its other labels, as an ontology or an imported graph gives them.
    ``is_single`` says that each subject has one value and that all are exact numbers, or years, of
    one datatype, so that no value contradicts another or is left out of a total."""

    iri: NamedNode
    label: str
    unit: str
    kinds: tuple[tuple[ValueKind, int], ...]
    statements: int
    subjects: int
    distinct: int
    values: tuple[KnownValue, ...] = ()
    is_structured: bool = True
    synonyms: tuple[str, ...] = ()
    is_single: bool = False

    @property
    def kind(self) -> ValueKind:
        """The kind of most values."""
        return self.kinds[0][0]

    @property
    def name(self) -> str:
        """The label without the unit."""
        return split_unit(self.label)[0]

    @property
    def truth(self) -> Literal | None:
        """The value that says yes, where all values say yes or no; None for other values."""
        values = {each.value for each in self.values} if self.distinct == 2 else set()
        return next((yes for no, yes in _TRUTHS if values == {no, yes}), None)


@dataclass(frozen=True, slots=True)
class CatalogueColumn:
    """A column of a table: its head, and the property that its cells state."""

    head: str
    property: NamedNode


@dataclass(frozen=True, slots=True)
class KnownClass:
    """A class of knowledge: of a type, of the rows of a table, or of what a word names.

    ``key`` is the IRI of the type, that of the table's document (of several tables in it with the
    number of the table), or the word. ``properties`` counts
    the members that have each. ``rows`` are the members of a table and of a word, which are
    complete: the class is closed. ``type`` is the class of a table's rows, where they have one in
    common, ``type_label`` is what a row is called, after its type or the title, and
    ``is_whole_type`` says that nothing else is of the type. ``synonyms`` are other labels of the
    type. ``merged_rows`` counts the rows of a table that are no members of their own, since others
    are called the same."""

    kind: ClassKind
    key: str
    label: str
    members: int
    properties: tuple[tuple[NamedNode, int], ...]
    rows: Sequence[NamedNode] = ()
    columns: tuple[CatalogueColumn, ...] = ()
    type: str = ""
    type_label: str = ""
    is_whole_type: bool = False
    synonyms: tuple[str, ...] = ()
    merged_rows: int = 0

    @property
    def is_closed(self) -> bool:
        """Whether all members are known: a row that isn't there is no member."""
        return self.kind == "table"


@dataclass(frozen=True)
class Catalogue:
    """The classes and properties of a state of knowledge, the most frequent first."""

    classes: tuple[KnownClass, ...]
    properties: tuple[KnownProperty, ...]

    @cached_property
    def _by_iri(self) -> Mapping[NamedNode, KnownProperty]:
        return {known.iri: known for known in self.properties}

    def property_of(self, iri: NamedNode) -> KnownProperty:
        """Return the property with the IRI."""
        return self._by_iri[iri]


def count_catalogue(store: Store, *, is_whole: bool = False) -> Catalogue:
    """Return the catalogue of the state of knowledge in a store: of what tables and imported graphs
    state, or the whole one."""
    rows = _read_standing_rows(store)
    columns = {place[1].property for row in rows for place in row.columns}
    parameters: dict[str, list[Term]] = {
        "properties": _relations(store, columns, is_whole=is_whole)
    }
    domains: defaultdict[str, list[tuple[NamedNode, int]]] = defaultdict(list)
    for row in iterate_rows(store, "catalogue/domains", parameters):
        domains[text_of(row["class"])].append((_node(row["property"]), _number(row["subjects"])))
    members = {
        text_of(row["class"]): _number(row["members"])
        for row in iterate_rows(store, "catalogue/classes")
    }
    labels = _labels(store, members)
    types = [
        KnownClass("type", iri, labels[iri], count, _most_frequent(domains[iri]), type=iri)
        for iri, count in members.items()
        if domains[iri] and iri != _ROW
    ]
    known_classes = (*_without_doubles(types), *_build_tables(store, rows, members, labels))
    synonyms = _synonyms(store, {known_class.type for known_class in known_classes})
    described = [
        replace(
            known_class,
            synonyms=(*synonyms.get(known_class.type, ()), *known_class.synonyms),
        )
        for known_class in known_classes
    ]
    properties = _count_properties(store, columns, parameters)
    classes = sorted((*described, *_name_classes(store, parameters)), key=_class_order)
    return Catalogue(tuple(classes), tuple(sorted(properties, key=_property_order)))


def _without_doubles(types: Sequence[KnownClass]) -> Iterator[KnownClass]:
    """Yield the types, of those with one label and the same members only one: what an imported
    graph gives a class has the type of the class's label too."""
    distinct: dict[tuple[object, ...], KnownClass] = {}
    own = v.type_iri("")
    for known in sorted(types, key=lambda known: (known.key.startswith(own), known.key)):
        label = known.label.casefold()
        distinct.setdefault((label, known.members, known.properties), known)
    yield from distinct.values()


def _relations(store: Store, columns: Collection[NamedNode], *, is_whole: bool) -> list[Term]:
    """Return the properties that tables or imported graphs state, or all."""
    quads = store.match(None, v.RDF_TYPE, v.tg("Relation"), v.KNOWLEDGE_GRAPH)
    relations = {quad.subject for quad in quads if isinstance(quad.subject, NamedNode)}
    properties = (iri for iri in relations if is_whole or _is_structured(iri, columns))
    return sorted(properties, key=str)


def _is_structured(iri: NamedNode, columns: Collection[NamedNode]) -> bool:
    return iri in columns or not iri.value.startswith(v.relation_iri(""))


def _class_order(known: KnownClass) -> tuple[int, str, str, str]:
    return -known.members, known.kind, known.label, known.key


def _property_order(known: KnownProperty) -> tuple[int, str]:
    return -known.statements, known.iri.value


_Parameters = Mapping[str, Sequence[Term]]


def _count_properties(
    store: Store, columns: Collection[NamedNode], parameters: _Parameters
) -> list[KnownProperty]:
    kinds: defaultdict[NamedNode, defaultdict[ValueKind, int]] = defaultdict(
        lambda: defaultdict(int)
    )
    subjects: defaultdict[NamedNode, int] = defaultdict(int)
    has_exact_values: defaultdict[NamedNode, list[bool]] = defaultdict(list)
    for row in iterate_rows(store, "catalogue/properties", parameters):
        iri, kind = _node(row["property"]), _KINDS.get(text_of(row["kind"]), "other")
        kinds[iri][kind] += _number(row["statements"])
        subjects[iri] += _number(row["subjects"])
        has_exact_values[iri].append(_has_exact_values(row))
    values, distinct = _frequent_values(store, parameters)
    labels = _labels(
        store,
        [iri.value for iri in kinds]
        + [text_of(value) for group in values.values() for value, _ in group],
    )
    synonyms = _synonyms(store, [iri.value for iri in kinds])
    counted = []
    for iri, counts in kinds.items():
        ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        label = labels[iri.value]
        shown = tuple(
            KnownValue(
                value,
                labels[value.value] if isinstance(value, NamedNode) else value.value,
                statements,
            )
            for value, statements in values[iri]
        )
        counted.append(
            KnownProperty(
                iri,
                label,
                split_unit(label)[1],
                tuple(ordered),
                sum(counts.values()),
                subjects[iri],
                distinct[iri],
                shown,
                _is_structured(iri, columns),
                (*synonyms.get(iri.value, ()), *split_glued(label)),
                has_exact_values[iri] == [True],
            )
        )
    return counted


def split_glued(label: str) -> tuple[str, ...]:
    """Return the two words that are written as one in small letters, where they alone can be meant:
    "sugar percent" of ``sugarpercent``; empty for any other label."""
    if not label.isalpha() or not label.islower() or len(label) < 2 * _LEAST_GLUED:
        return ()
    vocabulary = common_words()
    ends = range(_LEAST_GLUED, len(label) - _LEAST_GLUED + 1)
    pairs = [f"{label[:at]} {label[at:]}" for at in ends if vocabulary >= {label[:at], label[at:]}]
    return tuple(pairs) if label not in vocabulary and len(pairs) == 1 else ()


_LEAST_GLUED = 3


def _has_exact_values(row: Mapping[str, Term | None]) -> bool:
    """Return whether each subject of a datatype's values has one that is computed with."""
    counts = {_number(row[name]) for name in ("statements", "subjects", "measures")}
    return text_of(row["kind"]) in _EXACT and len(counts) == 1


def _frequent_values(
    store: Store, parameters: _Parameters
) -> tuple[dict[NamedNode, list[tuple[Object, int]]], dict[NamedNode, int]]:
    """Return the most frequent values of each property, and the number of distinct values."""
    kept: defaultdict[NamedNode, list[tuple[Object, int]]] = defaultdict(list)
    distinct: defaultdict[NamedNode, int] = defaultdict(int)
    for row in iterate_rows(store, "catalogue/values", parameters):
        iri, value = _node(row["property"]), row["value"]
        distinct[iri] += 1
        if isinstance(value, NamedNode | Literal) and len(value.value) <= LONGEST_VALUE:
            kept[iri].append((value, _number(row["statements"])))
            if len(kept[iri]) > 2 * MOST_VALUES:
                kept[iri] = list(_most_frequent(kept[iri], MOST_VALUES))
    return (
        defaultdict(
            list, {iri: list(_most_frequent(group, MOST_VALUES)) for iri, group in kept.items()}
        ),
        distinct,
    )


def _most_frequent(counts: Sequence[tuple[Term, int]], most: int | None = None) -> tuple:  # type: ignore[type-arg]
    key = lambda pair: (-pair[1], str(pair[0]))  # noqa: E731
    return tuple(sorted(counts, key=key) if most is None else nsmallest(most, counts, key=key))


# --- tables -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _CatalogueRow:
    """A table row: the position in a document, and the subjects, columns and types in knowledge.

    ``table`` and ``title`` are those of the row's table, 0 and empty where nothing says them."""

    document: str
    page: str
    start: int
    number: int
    table: int
    title: str
    subjects: frozenset[NamedNode]
    columns: tuple[tuple[int, CatalogueColumn], ...]
    types: frozenset[str]


def _read_standing_rows(store: Store) -> list[_CatalogueRow]:
    """Return the rows of the tables of standing documents, in the order of their places."""
    standing = standing_documents(store)
    return sorted(
        (row for row in _read_rows(store) if row.document in standing),
        key=lambda row: (row.document, row.page, row.start),
    )


def _build_tables(
    store: Store,
    rows: Sequence[_CatalogueRow],
    members: Mapping[str, int],
    labels: Mapping[str, str],
) -> Iterator[KnownClass]:
    titles = document_titles(store, {row.document for row in rows})
    for document, group in groupby(rows, key=attrgetter("document")):
        split = _split_tables(list(group))
        for number, table in enumerate(split, 1):
            title = _title_of(table[0], titles.get(document, ""), is_only=len(split) == 1)
            key = document if len(split) == 1 else f"{document}#table={number}"
            yield _build_table(key, title, table, members, labels)


def _title_of(row: _CatalogueRow, document: str, *, is_only: bool) -> str:
    """Return the title of the table of a row: its own, else that of its document; of several in a
    document with the number of the table on its page."""
    if row.title or is_only:
        return row.title or document
    return f"{document}, table {row.table}" if row.table else document


def _read_rows(store: Store) -> Iterator[_CatalogueRow]:
    cells: defaultdict[tuple[str, int, int], list[Mapping[str, Term | None]]] = defaultdict(list)
    for cell in iterate_rows(store, "catalogue/cells"):
        cells[text_of(cell["chunk"]), _number(cell["start"]), _number(cell["row"])].append(cell)
    for (chunk, start, number), group in cells.items():
        columns = {
            (
                _number(cell["column"]),
                CatalogueColumn(text_of(cell["head"]), _node(cell["property"])),
            )
            for cell in group
        }
        yield _CatalogueRow(
            document_of_chunk(chunk),
            chunk.rpartition(":")[0],
            start,
            number,
            max(_number(cell["table"]) if cell["table"] else 0 for cell in group),
            max(text_of(cell["title"]) for cell in group),
            frozenset(_node(cell["subject"]) for cell in group),
            tuple(sorted(columns, key=lambda pair: (pair[0], pair[1].head))),
            frozenset(text_of(cell["type"]) for cell in group if cell["type"]) - _VAGUE,
        )


def _split_tables(rows: Sequence[_CatalogueRow]) -> list[list[_CatalogueRow]]:
    """Return the rows of a document by table. A table goes on on the next page, where the title and
    the heads of the columns are the same."""
    tables: list[tuple[dict[int, str], list[_CatalogueRow]]] = []
    for row in rows:
        heads = {number: column.head for number, column in row.columns}
        for known, members in reversed(tables):
            if _is_one_table(members[-1], row, known, heads):
                known.update(heads)
                members.append(row)
                break
        else:
            tables.append((heads, [row]))
    return [members for _, members in tables]


def _is_one_table(
    before: _CatalogueRow, row: _CatalogueRow, known: Mapping[int, str], heads: Mapping[int, str]
) -> bool:
    """Return whether a row goes on with a table, whose ``known`` columns have heads."""
    if row.table and (before.page, before.table) == (row.page, row.table):
        return True
    if before.title != row.title or (row.table and before.page == row.page):
        return False
    shared = known.keys() & heads.keys()
    return bool(shared) and all(known.get(number, head) == head for number, head in heads.items())


def _build_table(
    key: str,
    title: str,
    rows: Sequence[_CatalogueRow],
    members: Mapping[str, int],
    labels: Mapping[str, str],
) -> KnownClass:
    subjects = tuple(
        dict.fromkeys(subject for row in rows for subject in sorted(row.subjects, key=str))
    )
    counts: defaultdict[NamedNode, set[NamedNode]] = defaultdict(set)
    columns: dict[tuple[int, CatalogueColumn], None] = {}
    for row in rows:
        for place in row.columns:
            columns[place] = None
            counts[place[1].property] |= row.subjects
    heads = [column.head for _, column in columns]
    common = frozenset.intersection(*(row.types for row in rows))
    titled = class_of_title(title, heads)
    type_of_title = v.type_iri(titled)
    type_iri = min(
        common, key=lambda iri: (members.get(iri, 0), iri != type_of_title, iri), default=""
    )
    return KnownClass(
        "table",
        key,
        title or "table",
        len(subjects),
        _most_frequent([(iri, len(group)) for iri, group in counts.items()]),
        subjects,
        tuple(column for _, column in sorted(columns, key=lambda pair: (pair[0], pair[1].head))),
        type_iri,
        labels.get(type_iri, "") or titled,
        bool(type_iri) and members.get(type_iri) == len(subjects),
        synonyms=tuple(filter(None, (_noun_of_title(title, heads),))),
        merged_rows=max(_count_rows(rows) - len(subjects), 0),
    )


def _noun_of_title(title: str, heads: Iterable[str]) -> str:
    """Return the noun that names what the rows of a table are, where the title ends with it, words
    such as "data" left out: "candy" for "Candy data"; empty where a column is called so."""
    words = title.lower().split()
    while words and words[-1] in word_set("tables", "collections"):
        words.pop()
    noun = words[-1] if words and words[-1].isalpha() else ""
    nouns = {singular_of(word) for head in heads for word in head.lower().split()}
    return "" if singular_of(noun) in nouns else noun


def _count_rows(rows: Sequence[_CatalogueRow]) -> int:
    """Return how many rows there are; one that chunks cut, or share, is one."""
    return len({(row.page, row.table or row.start, row.number) for row in rows})


# --- names ------------------------------------------------------------------------------------


def _name_classes(store: Store, parameters: _Parameters) -> Iterator[KnownClass]:
    """Yield a class for each word that begins the names of several things without a class that
    have a property in common: "pump" of Pump P1 and Pump P2."""
    groups: defaultdict[str, dict[NamedNode, set[NamedNode]]] = defaultdict(dict)
    for row in iterate_rows(store, "catalogue/names", parameters):
        word, _, rest = text_of(row["label"]).partition(" ")
        if rest and word.isalpha():
            members = groups[word.lower()]
            members.setdefault(_node(row["subject"]), set()).add(_node(row["property"]))
    for word, members in groups.items():
        shared = set.intersection(*members.values())
        if len(members) >= LEAST_NAMESAKES and shared:
            counts: defaultdict[NamedNode, int] = defaultdict(int)
            for properties in members.values():
                for iri in properties:
                    counts[iri] += 1
            rows = tuple(sorted(members, key=str))
            yield KnownClass(
                "name", word, word, len(rows), _most_frequent(list(counts.items())), rows
            )


# --- terms ------------------------------------------------------------------------------------


def _labels(store: Store, iris: Iterable[str]) -> dict[str, str]:
    """Return the labels of resources; the local name of one without label."""
    resources = sorted({iri for iri in iris if v.is_iri(iri)})
    labels: dict[str, str] = {}
    for row in select_rows(store, "retrieve/labels", {"items": [NamedNode(i) for i in resources]}):
        labels.setdefault(text_of(row["item"]), text_of(row["label"]))
    return {iri: labels.get(iri) or v.local_words(iri) for iri in resources}


def _synonyms(store: Store, iris: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the other labels of classes and properties that have some, sorted."""
    resources = [NamedNode(iri) for iri in sorted(filter(v.is_iri, iris))]
    names: defaultdict[str, set[str]] = defaultdict(set)
    for row in select_rows(store, "retrieve/aliases", {"entities": resources}):
        names[text_of(row["entity"])].add(text_of(row["alias"]))
    return {iri: tuple(sorted(own)) for iri, own in names.items()}


def _node(term: Term | None) -> NamedNode:
    assert isinstance(term, NamedNode)
    return term


def _number(term: Term | None) -> int:
    return int(text_of(term))
