"""The catalogue: the classes, tables and properties of knowledge, with counts and values.

It is a function of the standing state alone, counted by a few queries that group in the store, so
that memory here is bounded by the numbers of properties, tables and rows. What only sentences state
has no end of properties, and is counted only for who wants to see all."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
VAGUE = frozenset((v.type_iri("thing"), v.type_iri("concept"), _ROW))
"""Types that don't say what a thing is."""

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
        """The value that means yes of a property with yes/no values; None for other properties."""
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
    are called the same; ``common_types`` are all types that its rows have in common, ``main_type``
    is one that most of them have, where no more things have the type than there are rows."""

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
    common_types: tuple[str, ...] = ()
    main_type: str = ""

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


@dataclass(slots=True)
class PropertyValues:
    """The values of a property: how many differ, and the most frequent with their statements."""

    distinct: int = 0
    frequent: list[tuple[Object, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CatalogueCounts:
    """What is counted of knowledge, by IRIs: the members of each class, those with each property,
    the statements, subjects and measured statements of each property by the datatype of the value,
    its values, the properties of the things that a word begins the names of, and the tables."""

    members: dict[str, int]
    domains: dict[tuple[str, str], int]
    kinds: dict[tuple[str, str], tuple[int, int, int]]
    values: dict[str, PropertyValues]
    namesakes: dict[str, dict[str, frozenset[str]]]
    tables: tuple[KnownClass, ...]

    @property
    def columns(self) -> frozenset[NamedNode]:
        """The properties that columns of tables state."""
        return frozenset(column.property for known in self.tables for column in known.columns)


def count_catalogue(store: Store, *, is_whole: bool = False) -> Catalogue:
    """Return the catalogue of the state of knowledge in a store: of what tables and imported graphs
    state, or the whole one."""
    return make_catalogue(store, count_knowledge(store, is_whole=is_whole))


def count_knowledge(store: Store, *, is_whole: bool = False) -> CatalogueCounts:
    """Return what a catalogue is made of, counted in a store."""
    tables = tuple(read_tables(store, _read_rows(store)))
    columns = {column.property for known in tables for column in known.columns}
    parameters: _Parameters = {"properties": _relations(store, columns, is_whole=is_whole)}
    return CatalogueCounts(
        {
            text_of(row["class"]): _number(row["members"])
            for row in iterate_rows(store, "catalogue/classes")
        },
        {
            (text_of(row["class"]), text_of(row["property"])): _number(row["subjects"])
            for row in iterate_rows(store, "catalogue/domains", parameters)
        },
        {
            (text_of(row["property"]), text_of(row["kind"])): (
                _number(row["statements"]),
                _number(row["subjects"]),
                _number(row["measures"]),
            )
            for row in iterate_rows(store, "catalogue/properties", parameters)
        },
        count_values(store, parameters["properties"]),
        _count_namesakes(store, parameters),
        tables,
    )


def make_catalogue(store: Store, counts: CatalogueCounts) -> Catalogue:
    """Return the catalogue of what was counted, with the labels that a store has."""
    domains: defaultdict[str, list[tuple[NamedNode, int]]] = defaultdict(list)
    for (class_iri, iri), subjects in counts.domains.items():
        domains[class_iri].append((NamedNode(iri), subjects))
    labels = _labels(store, counts.members)
    types = [
        KnownClass("type", iri, labels[iri], count, _most_frequent(domains[iri]), type=iri)
        for iri, count in counts.members.items()
        if domains[iri] and iri != _ROW
    ]
    tables = (_with_type(known, counts.members, labels) for known in counts.tables)
    known_classes = (*_without_doubles(types), *tables)
    synonyms = _synonyms(store, {known_class.type for known_class in known_classes})
    labelled = [
        replace(
            known_class,
            synonyms=(*synonyms.get(known_class.type, ()), *known_class.synonyms),
        )
        for known_class in known_classes
    ]
    classes = sorted((*labelled, *_name_classes(counts.namesakes)), key=_class_order)
    properties = _make_properties(store, counts)
    return Catalogue(tuple(classes), tuple(sorted(properties, key=_property_order)))


def _without_doubles(types: Sequence[KnownClass]) -> Iterator[KnownClass]:
    """Yield the types, of those with one label and the same members only one: what an imported
    graph gives a class has the type of the class's label too."""
    distinct: dict[tuple[object, ...], KnownClass] = {}
    own_types = v.type_iri("")
    for known in sorted(types, key=lambda known: (known.key.startswith(own_types), known.key)):
        label = known.label.casefold()
        distinct.setdefault((label, known.members, known.properties), known)
    yield from distinct.values()


def _relations(store: Store, columns: Collection[NamedNode], *, is_whole: bool) -> list[Term]:
    """Return the properties that tables or imported graphs state, or all."""
    quads = store.match(None, v.RDF_TYPE, v.tg("Relation"), v.KNOWLEDGE_GRAPH)
    relations = {quad.subject for quad in quads if isinstance(quad.subject, NamedNode)}
    parameters = (iri for iri in relations if is_whole or is_structured(iri, columns))
    return sorted(parameters, key=str)


def is_structured(iri: NamedNode, columns: Collection[NamedNode]) -> bool:
    """Return whether a column of a table, or an imported graph, states a property."""
    return iri in columns or not iri.value.startswith(v.relation_iri(""))


def _class_order(known: KnownClass) -> tuple[int, str, str, str]:
    return -known.members, known.kind, known.label, known.key


def _property_order(known: KnownProperty) -> tuple[int, str]:
    return -known.statements, known.iri.value


_Parameters = Mapping[str, Sequence[Term]]


def _make_properties(store: Store, counts: CatalogueCounts) -> Iterator[KnownProperty]:
    by_datatype: defaultdict[str, dict[str, tuple[int, int, int]]] = defaultdict(dict)
    for (iri, datatype), counted in counts.kinds.items():
        by_datatype[iri][datatype] = counted
    shown = {iri: counts.values[iri].frequent for iri in by_datatype}
    terms = (value.value for group in shown.values() for value, _ in group)
    labels, columns = _labels(store, (*by_datatype, *terms)), counts.columns
    synonyms = _synonyms(store, list(by_datatype))
    for iri, datatypes in by_datatype.items():
        kinds: defaultdict[ValueKind, int] = defaultdict(int)
        for datatype, (statements, _, _) in datatypes.items():
            kinds[_KINDS.get(datatype, "other")] += statements
        node, label = NamedNode(iri), labels[iri]
        yield KnownProperty(
            node,
            label,
            split_unit(label)[1],
            tuple(sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0]))),
            sum(kinds.values()),
            sum(subjects for _, subjects, _ in datatypes.values()),
            counts.values[iri].distinct,
            tuple(
                KnownValue(
                    value, labels[value.value] if isinstance(value, NamedNode) else value.value, n
                )
                for value, n in shown[iri]
            ),
            is_structured(node, columns),
            (*synonyms.get(iri, ()), *split_glued(label)),
            [one in _EXACT and len(set(n)) == 1 for one, n in datatypes.items()] == [True],
        )


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


def count_values(store: Store, properties: Sequence[Term]) -> dict[str, PropertyValues]:
    """Return the values of each property."""
    kept: defaultdict[str, PropertyValues] = defaultdict(PropertyValues)
    for row in iterate_rows(store, "catalogue/values", {"properties": properties}):
        entry, value = kept[text_of(row["property"])], row["value"]
        entry.distinct += 1
        if isinstance(value, NamedNode | Literal) and len(value.value) <= LONGEST_VALUE:
            entry.frequent.append((value, _number(row["statements"])))
            if len(entry.frequent) > 2 * MOST_VALUES:
                entry.frequent = most_frequent_values(entry.frequent)
    for entry in kept.values():
        entry.frequent = most_frequent_values(entry.frequent)
    return dict(kept)


def most_frequent_values(counts: Sequence[tuple[Object, int]]) -> list[tuple[Object, int]]:
    """Return the values that the catalogue shows, the most frequent first."""
    return list(_most_frequent(counts, MOST_VALUES))


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


def read_tables(store: Store, rows: Iterable[_CatalogueRow]) -> Iterator[KnownClass]:
    """Yield the tables of standing documents, of rows in any order, without a type."""
    standing = standing_documents(store)
    ordered = sorted(
        (row for row in rows if row.document in standing),
        key=lambda row: (row.document, row.page, row.start),
    )
    titles = document_titles(store, {row.document for row in ordered}) if ordered else {}
    for document, group in groupby(ordered, key=attrgetter("document")):
        split = _split_tables(list(group))
        for number, table in enumerate(split, 1):
            title = _title_of(table[0], titles.get(document, ""), is_only=len(split) == 1)
            key = document if len(split) == 1 else f"{document}#table={number}"
            yield _build_table(key, title, table)


def _title_of(row: _CatalogueRow, document: str, *, is_only: bool) -> str:
    """Return the title of the table of a row: its own, else that of its document; of several in a
    document with the number of the table on its page."""
    if row.title or is_only:
        return row.title or document
    return f"{document}, table {row.table}" if row.table else document


def read_rows_of(store: Store, chunks: Sequence[str]) -> Iterator[_CatalogueRow]:
    """Yield the rows of tables in chunks."""
    parameters = {"chunks": [NamedNode(chunk) for chunk in chunks]}
    return (
        _group_cells(iterate_rows(store, "catalogue/cells-of", parameters)) if chunks else iter(())
    )


def _read_rows(store: Store) -> Iterator[_CatalogueRow]:
    return _group_cells(iterate_rows(store, "catalogue/cells"))


def _group_cells(rows: Iterable[Mapping[str, Term | None]]) -> Iterator[_CatalogueRow]:
    cells: defaultdict[tuple[str, int, int], list[Mapping[str, Term | None]]] = defaultdict(list)
    for cell in rows:
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
            frozenset(text_of(cell["type"]) for cell in group if cell["type"]) - VAGUE,
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


def _build_table(key: str, title: str, rows: Sequence[_CatalogueRow]) -> KnownClass:
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
    return KnownClass(
        "table",
        key,
        title or _UNTITLED,
        len(subjects),
        _most_frequent([(iri, len(group)) for iri, group in counts.items()]),
        subjects,
        tuple(column for _, column in sorted(columns, key=lambda pair: (pair[0], pair[1].head))),
        synonyms=tuple(filter(None, (_noun_of_title(title, heads),))),
        merged_rows=max(_count_rows(rows) - len(subjects), 0),
        common_types=tuple(sorted(frozenset.intersection(*(row.types for row in rows)))),
        main_type=_find_main_type(rows),
    )


_UNTITLED = "table"


def _find_main_type(rows: Sequence[_CatalogueRow]) -> str:
    """Return the type that most rows of a table have, more than half of them; empty for none."""
    counts = Counter(iri for row in rows for iri in row.types)
    iri, count = min(counts.items(), key=lambda pair: (-pair[1], pair[0]), default=("", 0))
    return iri if 2 * count > len(rows) else ""


def _with_type(
    known: KnownClass, members: Mapping[str, int], labels: Mapping[str, str]
) -> KnownClass:
    """Return a table with the least type that its rows have in common."""
    title = "" if known.label == _UNTITLED else known.label
    titled = class_of_title(title, [column.head for column in known.columns])
    type_of_title = v.type_iri(titled)
    is_within = members.get(known.main_type, 0) <= known.members
    main_type = known.main_type if is_within else ""
    iri = min(
        known.common_types,
        key=lambda iri: (members.get(iri, 0), iri != type_of_title, iri),
        default="",
    )
    return replace(
        known,
        type=iri,
        type_label=labels.get(iri or main_type, "") or titled,
        main_type=main_type,
        is_whole_type=bool(iri) and members.get(iri) == known.members,
    )


def _noun_of_title(title: str, heads: Iterable[str]) -> str:
    """Return the noun that names what the rows of a table are, where the title ends with it, words
    such as "data" left out: "candy" for "Candy data"; empty where a column is called so."""
    words = title.lower().split()
    while words and words[-1] in word_set("tables", "collections"):
        words.pop()
    noun = words[-1] if words and words[-1].isalpha() else ""
    labelled = {singular_of(word) for head in heads for word in head.lower().split()}
    return "" if singular_of(noun) in labelled else noun


def _count_rows(rows: Sequence[_CatalogueRow]) -> int:
    """Return how many rows there are; one that chunks cut, or share, is one."""
    return len({(row.page, row.table or row.start, row.number) for row in rows})


# --- names ------------------------------------------------------------------------------------


def _count_namesakes(store: Store, parameters: _Parameters) -> dict[str, dict[str, frozenset[str]]]:
    """Return the things without a class that each word begins the name of, with their properties:
    Pump P1 and Pump P2 for "pump"."""
    groups: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in iterate_rows(store, "catalogue/names", parameters):
        if word := first_word(text_of(row["label"])):
            groups[word][text_of(row["subject"])].add(text_of(row["property"]))
    return {
        word: {member: frozenset(entry) for member, entry in group.items()}
        for word, group in groups.items()
    }


def first_word(name: str) -> str:
    """Return the word that begins a name of several, in small letters; empty where none does."""
    word, _, rest = name.partition(" ")
    return word.lower() if rest and word.isalpha() else ""


def _name_classes(namesakes: Mapping[str, Mapping[str, frozenset[str]]]) -> Iterator[KnownClass]:
    """Yield a class for each word that begins the names of several things that have a property in
    common."""
    for word, members in namesakes.items():
        if len(members) >= LEAST_NAMESAKES and frozenset.intersection(*members.values()):
            counts: defaultdict[NamedNode, int] = defaultdict(int)
            for properties in members.values():
                for iri in properties:
                    counts[NamedNode(iri)] += 1
            rows = tuple(map(NamedNode, sorted(members)))
            counted = _most_frequent(list(counts.items()))
            yield KnownClass("name", word, word, len(rows), counted, rows)


# --- terms ------------------------------------------------------------------------------------


def _labels(store: Store, iris: Iterable[str]) -> dict[str, str]:
    """Return the labels of resources; the local name of one without label."""
    sought = sorted({iri for iri in iris if v.is_iri(iri)})
    labels: dict[str, str] = {}
    for row in select_rows(store, "retrieve/labels", {"items": [NamedNode(i) for i in sought]}):
        labels.setdefault(text_of(row["item"]), text_of(row["label"]))
    return {iri: labels.get(iri) or v.local_words(iri) for iri in sought}


def _synonyms(store: Store, iris: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the other labels of classes and properties that have some, sorted."""
    sought = [NamedNode(iri) for iri in sorted(filter(v.is_iri, iris))]
    names: defaultdict[str, set[str]] = defaultdict(set)
    for row in select_rows(store, "retrieve/aliases", {"entities": sought}):
        names[text_of(row["entity"])].add(text_of(row["alias"]))
    return {iri: tuple(sorted(entry)) for iri, entry in names.items()}


def _node(term: Term | None) -> NamedNode:
    assert isinstance(term, NamedNode)
    return term


def _number(term: Term | None) -> int:
    return int(text_of(term))
