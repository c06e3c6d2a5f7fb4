"""What every store does: on disk, in memory, and as a published snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import (
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    QueryBoolean,
    RdfFormat,
    Triple,
    parse,
)

from tests.support.endpoints import oxigraph_server
from tests.support.examples import examples
from tgraph import vocabulary as v
from tgraph.errors import QueryError, StoreError
from tgraph.extensions.interchange.publishing import data_update, move_to_graph
from tgraph.store.base import Solutions, Store, load_query, select_rows
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.sparql_endpoint import SparqlEndpoint, SparqlStore
from tgraph.store.statements import (
    Statements,
    canonical_literal,
    format_nquads,
    reifier_quad,
    to_bytes,
)
from tgraph.store.writer import LayeredStore

A, B, P = NamedNode("urn:a"), NamedNode("urn:b"), NamedNode("urn:p")
G = NamedNode("urn:g")
EDGE = v.edge_iri(A, P, B)
QUADS = [
    Quad(A, P, B, DefaultGraph()),
    Quad(A, P, Literal("x", language="en"), G),
    Quad(B, v.tg("score"), Literal("9.0", datatype=v.xsd("double")), G),
    reifier_quad(EDGE, Triple(A, P, B)),
    Quad(B, v.tg("contains"), NamedNode(EDGE), v.SOURCE_GRAPH),
]
Maker = Callable[[Iterable[Quad]], Store]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stores")


@pytest.fixture(scope="module")
def oxigraph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparqlEndpoint]:
    with oxigraph_server(tmp_path_factory.mktemp("oxigraph")) as found:
        yield found


@pytest.fixture(params=["memory", "disk", "snapshot", "layered", "layered over some", "endpoint"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Maker:
    def disk(quads: Iterable[Quad]) -> OxigraphStore:
        store = OxigraphStore.open(tmp_path / "store")
        store.extend(quads)
        return store

    def snapshot(quads: Iterable[Quad]) -> OxigraphStore:
        store = disk(quads)
        store.backup(tmp_path / "copy")
        store.close()
        return OxigraphStore.snapshot(tmp_path / "copy")

    def layered(quads: Iterable[Quad]) -> LayeredStore:
        store = LayeredStore(disk([]))
        store.extend(quads)
        return store

    def over_some(quads: Iterable[Quad]) -> LayeredStore:
        known = list(quads)
        store = LayeredStore(disk(known[::2]), in_memory=3)
        store.extend(known)
        return store

    def endpoint(quads: Iterable[Quad]) -> SparqlStore:
        found = request.getfixturevalue("oxigraph")
        found.update("CLEAR ALL")
        found.update(
            data_update("INSERT", [move_to_graph(quad, quad.graph_name) for quad in quads])
        )
        return SparqlStore(found)

    makers: dict[str, Maker] = {
        "endpoint": endpoint,
        "memory": OxigraphStore.memory,
        "disk": disk,
        "snapshot": snapshot,
        "layered": layered,
        "layered over some": over_some,
    }
    return makers[request.param]


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["extend", "remove", "query"]), st.sets(st.integers(0, 9))),
    max_size=8,
)


@settings(max_examples=examples(30), deadline=None)
@given(st.sets(st.integers(0, 9)), st.integers(0, 5), OPERATIONS)
def test_layers_are_one_store(
    places: Path, below: set[int], in_memory: int, operations: list[tuple[str, set[int]]]
) -> None:
    quads = [Quad(NamedNode(f"urn:{n % 3}"), P, Literal(n), G) for n in range(10)]
    disk = OxigraphStore.open(places / f"layers{len(list(places.iterdir()))}")
    disk.extend(quads[n] for n in below)
    store, expected = LayeredStore(disk, in_memory), {quads[n] for n in below}
    for name, numbers in operations:
        changed = {quads[n] for n in numbers}
        if name == "extend":
            store.extend(changed)
            expected |= changed
        elif name == "remove":
            store.remove(changed)
            expected -= changed
        else:
            rows = store.query("SELECT ?s ?o WHERE { GRAPH ?g { ?s ?p ?o } }")
            assert isinstance(rows, Solutions)
            assert len(list(rows)) == len(expected)
        found = list(store.match())
        assert (len(found), set(found)) == (len(expected), expected)
        assert {quad for quad in quads if store.has_quad(quad)} == expected
        some = {quad for quad in expected if quad.subject == NamedNode("urn:1")}
        assert set(store.match(NamedNode("urn:1"))) == some
    store.close()


def test_match_finds_by_every_part(make: Maker) -> None:
    store: Store = make(QUADS)
    assert len(list(store.match())) == len(QUADS)
    assert set(store.match(A)) == set(QUADS[:2])
    assert set(store.match(None, P)) == set(QUADS[:2])
    assert set(store.match(None, None, B)) == {QUADS[0]}
    assert set(store.match(None, None, None, G)) == {q for q in store.match() if q.graph_name == G}
    assert set(store.match(None, None, None, DefaultGraph())) == {QUADS[0]}
    nine = Literal("9", datatype=v.xsd("double"))
    assert [quad.subject for quad in store.match(None, None, nine)] == [B]


def test_terms_come_back_as_they_are(make: Maker) -> None:
    texts = ["", " ", "a\nb\r\t", "x\" \\ ' y", "ü — 極地 \U0001f427", " .\n", "<<( .\n", "\u2028"]
    values: list[Literal | NamedNode] = [
        *map(Literal, texts),
        *(Literal(text, language="de-at") for text in texts),
        *(
            canonical_literal(value)
            for value in (1, -2.5, True, datetime(1911, 12, 14), float("inf"))
        ),
        Literal("unlike its type", datatype=v.xsd("integer")),
        NamedNode("urn:%C3%BC?a=b&c#d"),
    ]
    quads = {Quad(A, P, value, graph) for value in values for graph in (DefaultGraph(), G)}
    quads |= {Quad(A, v.RDF_REIFIES, Triple(A, P, value), G) for value in values}
    store = make(quads)
    assert set(store.match()) == quads
    for value in values:
        assert set(store.match(None, P, value, G)) == {Quad(A, P, value, G)}
    reified = Triple(A, P, values[2])
    assert list(store.match(None, None, reified)) == [Quad(A, v.RDF_REIFIES, reified, G)]
    lines = store.lines(G)
    assert set(parse(b"".join(lines), RdfFormat.N_QUADS)) == set(store.match(graph=G))
    assert len(lines) == len(list(store.match(graph=G)))
    assert store.lines(NamedNode("urn:nowhere")) == []


def test_nothing_matches_a_blank_node_of_others(make: Maker) -> None:
    assert list(make(QUADS).match(BlankNode())) == []


def test_rows_have_a_value_or_none_for_each_column(make: Maker) -> None:
    store = make([Quad(A, v.RDFS_LABEL, Literal("a"), DefaultGraph()), *QUADS])
    [row] = select_rows(store, "retrieve/labels", {"items": [A, B]})
    assert (row["item"], row["label"]) == (A, Literal("a"))
    found = store.query("SELECT ?s ?x WHERE { ?s rdfs:label ?l OPTIONAL { ?l <urn:p> ?x } }")
    assert isinstance(found, Solutions)
    assert [variable.value for variable in found.variables] == ["s", "x"]
    assert [(row["s"], row["x"]) for row in found] == [(A, None)]
    assert select_rows(store, "trace/sessions", {"catalogue": [G]}) == []


def test_what_is_for_reading_is_not_written_to(make: Maker) -> None:
    store = make(QUADS)
    before, new = set(store.match()), Quad(A, P, A, G)
    try:
        store.extend([new, *QUADS])
    except (StoreError, TypeError):  # a snapshot, an endpoint
        with pytest.raises((StoreError, TypeError)):
            store.remove(QUADS)
        assert set(store.match()) == before
        return
    assert set(store.match()) == {new, *before}
    store.remove([new, new])
    assert set(store.match()) == before


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=4))
def test_lines_are_those_of_the_quads_of_a_graph(texts: list[str]) -> None:
    """A text may hold what a line ends with."""
    values = [*texts, " .\n", f" {G} .\n", "\u2028 .\r\n", "<<( .\n"]
    quads = [
        Quad(subject, P, Literal(text), graph)
        for text in values
        for subject, graph in ((A, G), (B, G), (A, v.SOURCE_GRAPH))
    ]
    quads += [Quad(A, v.RDF_REIFIES, Triple(A, P, Literal(text)), G) for text in values]
    layered = LayeredStore(OxigraphStore.memory(quads[::2]))
    layered.extend(quads)
    wanted = {q for q in quads if q.graph_name == G}
    for store in (OxigraphStore.memory(quads), layered):
        lines = store.lines(G)
        assert len(lines) == len(wanted)
        assert set(lines) == set(to_bytes(wanted).splitlines(keepends=True))
        if isinstance(store, OxigraphStore):
            dumped: list[bytes] = []
            store.dump(G, dumped.extend)
            assert sorted(dumped) == sorted(lines)
        assert store.lines(NamedNode("urn:nowhere")) == []


def test_the_default_graph_of_a_query_is_knowledge(make: Maker) -> None:
    store = make(QUADS)
    found = store.query("SELECT ?o WHERE { <urn:a> <urn:p> ?o }")
    assert isinstance(found, Solutions)
    assert len(list(found)) == 1
    asked = store.query("ASK { GRAPH ?g { ?x tg:contains << ?s <urn:p> <urn:b> >> } }")
    assert isinstance(asked, QueryBoolean)
    assert bool(asked)


def test_a_query_that_is_none_is_a_clear_error(make: Maker) -> None:
    with pytest.raises(QueryError, match="can't be parsed"):
        make([]).query("SELECT WHERE")


def test_extending_twice_changes_nothing_and_removing_what_is_not_there_neither() -> None:
    store = OxigraphStore.memory(QUADS)
    store.extend(QUADS)
    assert len(list(store.match())) == len(QUADS)
    store.remove([*QUADS[:2], QUADS[0], Quad(A, P, A, G)])
    assert set(store.match(A)) == set()


def test_extending_is_all_or_none(tmp_path: Path) -> None:
    store = OxigraphStore.open(tmp_path / "store")

    def breaks_off() -> Iterable[Quad]:
        yield QUADS[0]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.extend(breaks_off())
    assert list(store.match()) == []


def test_a_parameter_can_not_change_a_query() -> None:
    evil = Literal('" } . ?x ?y ?z . { #\\\n')
    text = load_query("retrieve/labels", {"items": [evil]})
    assert "<param:" not in text
    assert "{ #" not in text.replace(str(evil), "")
    with pytest.raises(QueryError):
        OxigraphStore.memory().query(load_query("retrieve/labels") + " }")


def test_select_gives_rows_by_column() -> None:
    store = OxigraphStore.memory([Quad(A, v.RDFS_LABEL, Literal("a"), DefaultGraph())])
    assert select_rows(store, "trace/sessions", {"catalogue": [G]}) == []
    assert all(isinstance(row, dict) for row in select_rows(store, "retrieve/edges"))


def test_a_file_is_loaded_whole_in_either_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "q.nq").write_text(format_nquads(QUADS))
    for bulk, at_once in ((50_000, 1), (0, 10_000), (0, 1)):
        monkeypatch.setattr("tgraph.store.oxigraph.BULK", bulk)
        monkeypatch.setattr("tgraph.store.oxigraph.AT_ONCE", at_once)
        store = OxigraphStore.open(tmp_path / f"store{bulk}-{at_once}")
        store.load(tmp_path / "q.nq")
        store.load(tmp_path / "q.nq")
        store.flush()
        assert len(list(store.match())) == len(QUADS)


def test_a_database_that_is_none_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        OxigraphStore.snapshot(tmp_path / "missing")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError):
        OxigraphStore.open(tmp_path / "file")


def test_a_database_that_stays_open_is_refused_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tgraph.store.oxigraph.LOCK_PATIENCE", 0.05)
    store = OxigraphStore.open(tmp_path / "store")
    with pytest.raises(StoreError, match="lock hold by current process"):
        OxigraphStore.open(tmp_path / "store")
    store.close()
    store.close()
    OxigraphStore.open(tmp_path / "store").close()


# --- literals and names ---------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.one_of(st.integers(), st.floats(), st.decimals(allow_nan=False).map(str))
DATES = st.datetimes(min_value=datetime(1, 1, 1)).map(lambda moment: moment.isoformat())
VALUES = st.one_of(
    TEXT,
    NUMBERS.map(str),
    NUMBERS.map(lambda number: f"+0{number}0"),
    DATES,
    DATES.map(lambda moment: f"{moment}.500Z"),
    DATES.map(lambda moment: moment[:10]),
    DATES.map(lambda moment: f"{moment[11:]}+02:00"),
    st.sampled_from(
        ["true", "1", "0", "FALSE", "P1Y2M3DT4H5M6.70S", "-P0D", "--02-29", "1999", "INF"]
    ),
)
DATATYPES = st.sampled_from(
    """string boolean decimal integer double float date time dateTime dateTimeStamp gYear gMonth
    gDay gYearMonth gMonthDay duration yearMonthDuration dayTimeDuration byte short int long
    unsignedByte unsignedShort unsignedInt unsignedLong positiveInteger nonNegativeInteger
    negativeInteger nonPositiveInteger hexBinary base64Binary anyURI language normalizedString token
    NMTOKEN Name NCName anyAtomicType unknown""".split()  # noqa: SIM905
)
LANGUAGES = st.sampled_from(["en", "en-US", "EN-us", "zh-Hant-TW", "de-AT", "x-private", "ar"])
LITERALS = st.one_of(
    st.builds(lambda value, name: Literal(value, datatype=v.xsd(name)), VALUES, DATATYPES),
    st.builds(lambda value, language: Literal(value, language=language), TEXT, LANGUAGES),
    st.builds(Literal, TEXT),
)


@settings(max_examples=examples(15), deadline=None)
@given(st.lists(LITERALS, min_size=20, max_size=60, unique_by=str))
def test_an_edge_has_the_same_iri_before_and_after_it_was_stored(
    places: Path, literals: list[Literal]
) -> None:
    """In batches, because opening a database costs more than asking it."""
    path = places / str(len(list(places.iterdir())))
    store = OxigraphStore.open(path)
    subjects = {NamedNode(f"urn:s:{n}"): item for n, item in enumerate(literals)}
    before = {s: v.edge_iri(s, P, item) for s, item in subjects.items()}
    store.extend(
        Quad(s, P, v.canonicalise_literal(item), DefaultGraph()) for s, item in subjects.items()
    )
    store.close()
    for quad in OxigraphStore.snapshot(path).match(None, P):
        assert isinstance(quad.subject, NamedNode)
        assert isinstance(quad.object, Literal)
        assert v.edge_iri(quad.subject, P, quad.object) == before[quad.subject]
        assert (
            v.canonicalise_literal(quad.object)
            == quad.object
            == v.canonicalise_literal(subjects[quad.subject])
        )


@given(LITERALS)
def test_nquads_carry_any_literal(value: Literal) -> None:
    quad = Quad(A, P, v.canonicalise_literal(value), G)
    assert list(parse(format_nquads([quad]), RdfFormat.N_QUADS)) == [quad]


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_can_be_stated(text: str) -> None:
    """A lone surrogate, which RDF can't hold, becomes a replacement character."""
    out = Statements(G)
    out.add("urn:a", (P, text))
    (quad,) = parse(format_nquads(out.quads), RdfFormat.N_QUADS)
    assert isinstance(quad.object, Literal)
    assert quad.object.value == text.encode("utf-8", "replace").decode()


@given(st.floats() | st.integers() | st.booleans() | st.datetimes())
def test_numbers_and_times_are_stated_in_canonical_form(value: float | datetime) -> None:
    stated = canonical_literal(value)
    assert v.canonicalise_literal(stated) == stated
    store = OxigraphStore.memory([Quad(A, P, stated, G)])
    assert [quad.object for quad in store.match()] == [stated]


@given(st.floats(-1e10, 1e10) | st.floats(-1, 1))
def test_a_number_is_stated_as_the_store_would_write_it(value: float) -> None:
    assert canonical_literal(value) == v.canonicalise_literal(Literal(round(value, 6)))


@given(TEXT, st.sampled_from([v.entity_iri, v.relation_iri, v.type_iri]))
def test_every_name_gives_a_valid_iri(name: str, mint: Callable[[str], str]) -> None:
    node = NamedNode(mint(name))
    assert node.value.isascii()
    assert mint(f"  {name}\t") == mint(v.normalise_name(name)) == node.value
    quad = Quad(node, P, node, G)
    assert list(parse(format_nquads([quad]), RdfFormat.N_QUADS)) == [quad]
