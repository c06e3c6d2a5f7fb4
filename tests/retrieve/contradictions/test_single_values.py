"""What a thing has one of: values and amounts that disagree, and all that does not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

import tgraph
from tgraph import vocabulary as v
from tgraph.engine.components import Components
from tgraph.engine.graph import KnowledgeGraph
from tgraph.explain.audit.named_audits import find_audit, run_audit
from tgraph.retrieve.contradictions.single_values import amount_of, parse_measure
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel
from tgraph.testing.script import parse_blocks

Fact = tuple[str, str, str]

PEOPLE = ("Marie Curie", "Joseph", "Roland", "Pierre", "Paul")
SAID: Mapping[str, Sequence[Fact]] = {
    "one": (
        ("Marie Curie", "be born in", "Warsaw"),
        ("Joseph", "be born in", "Poland"),
        ("Roland", "be born in", "Bath"),
        ("Marie Curie", "have father", "Joseph"),
        ("Marie Curie", "be married to", "Pierre"),
        ("Ruritania", "have capital", "Strelsau"),
        ("Fram", "have length in metres", "39"),
        ("Gauss", "have length", "46 metres"),
        ("Aurora", "have tonnage in tons", "400"),
        ("Nimrod", "be long", "more than 30 metres"),
        ("Quest", "have maximum depth in fathoms", "10"),
        ("Belgica", "have ISBN", "123"),
        ("Belgica", "have crew of men", "19"),
    ),
    "two": (
        ("Marie Curie", "have place of birth", "Vilnius"),
        ("Joseph", "be born in", "Lublin"),
        ("Roland", "be born in", "Wells"),
        ("Marie Curie", "have father", "Roland"),
        ("Marie Curie", "be married to", "Paul"),
        ("Zenda", "be the capital of", "Ruritania"),
        ("Fram", "have length in feet", "128"),
        ("Gauss", "be long", "about 52 metres"),
        ("Aurora", "have tonnage in tons", "402"),
        ("Nimrod", "be long", "41 metres"),
        ("Quest", "have average depth in fathoms", "7"),
        ("Belgica", "have ISBN", "124"),
        ("Belgica", "have crew of men", "21"),
    ),
    "three": (("Bath", "lie near", "Wells"),),
}
VALUES = ("ISBN", "length", "long", "tonnage", "depth", "crew")


def quote(fact: Fact) -> str:
    return f"{' '.join(fact)}."


def text(name: str) -> str:
    return "\n".join(map(quote, SAID[name])) + "\n"


def extraction(request: Any) -> str:
    shown = parse_blocks(request.messages)["TEXT"]
    facts = [fact for name in SAID for fact in SAID[name] if quote(fact) in shown]
    literal = [fact for fact in facts if any(word in fact[1] for word in VALUES)]
    edges = [fact for fact in facts if fact not in literal]
    names = {name for fact in facts for name in (fact[0],)} | {fact[2] for fact in edges}
    places = {n for n in names if n not in PEOPLE}
    return json.dumps(
        {
            "entities": [
                {"name": n, "type": "place" if n in places else "person", "description": ""}
                for n in sorted(names)
            ],
            "relationships": [
                {
                    "subject": s,
                    "predicate": p,
                    "object": o,
                    "description": "",
                    "keywords": [],
                    "strength": 5,
                    "quote": quote((s, p, o)),
                }
                for s, p, o in edges
            ],
            "attributes": [
                {
                    "subject": s,
                    "predicate": p,
                    "value": o,
                    "datatype": "integer" if o.isdigit() and "ISBN" not in p else "string",
                    "quote": quote((s, p, o)),
                }
                for s, p, o in literal
            ],
        }
    )


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory):
    folder: Path = tmp_path_factory.mktemp("single")
    for name in SAID:
        (folder / f"{name}.txt").write_text(text(name))
    values = {"extract.gleanings": 0}
    model = ScriptedModel({"extract_graph": extraction})
    parts = Components(
        load_settings(None, values), folder / "cache", chat=model, embedder=HashingEmbedder()
    )
    with tgraph.open(folder / "graph", create=True, parts=parts, settings=values) as kg:
        kg.index([folder / f"{name}.txt" for name in SAID])
        yield kg


def rows(graph: KnowledgeGraph, about: str = "") -> list[tuple[str, str, str]]:
    found = graph.audit("contradictions", about)
    return [(row[0], row[2], row[4]) for row in found.rows]


def test_single_values_and_amounts_that_differ_are_listed_with_both_sources(graph):
    found = graph.audit("contradictions")
    pairs = {(row[0], frozenset((row[2], row[4]))) for row in found.rows}
    assert pairs == {
        (
            "values",
            frozenset(
                ("Marie Curie — be born in — Warsaw", "Marie Curie — have place of birth — Vilnius")
            ),
        ),
        (
            "values",
            frozenset(("Marie Curie — have father — Joseph", "Marie Curie — have father — Roland")),
        ),
        (
            "values",
            frozenset(
                ("Ruritania — have capital — Strelsau", "Zenda — be the capital of — Ruritania")
            ),
        ),
        (
            "amounts",
            frozenset(("Gauss — have length — 46 metres", "Gauss — be long — about 52 metres")),
        ),
    }
    for row in found.rows:
        assert {row[3].rpartition("/")[2], row[5].rpartition("/")[2]} == {"one.txt", "two.txt"}


@pytest.mark.parametrize(
    "name", ["Joseph", "Roland", "Fram", "Aurora", "Nimrod", "Quest", "Belgica"]
)
def test_what_may_both_be_true_is_not_listed(graph, name):
    assert rows(graph, name) == []


def test_an_answer_that_cites_one_side_cites_both_in_its_note(graph):
    answer = graph.ask("How long is the Gauss?", history=[])
    notes = [note for note in answer.notes if "46 metres" in note.text]
    assert len(notes) == 1
    assert "about 52 metres" in notes[0].text
    assert {place.path.rpartition("/")[2] for place in notes[0].places} == {"one.txt", "two.txt"}
    shapes = run_audit(
        graph.opened.read(),
        v.collection_iri("explainability"),
        find_audit("shapes"),
        [answer.session],
    )
    assert shapes.passed, shapes.rows


def test_what_the_graph_declares_functional_has_one_value(graph):
    isbn = v.relation_iri("have ISBN")
    owl = "http://www.w3.org/2002/07/owl#FunctionalProperty"
    statement = f"{{ <{isbn}> a <{owl}> }}"
    graph.update(f"INSERT DATA {statement}")
    try:
        (found,) = rows(graph, "Belgica")
        assert found[0] == "values"
        assert {"123", "124"} == {found[1].split()[-1], found[2].split()[-1]}
    finally:
        graph.update(f"DELETE DATA {statement}")
    assert rows(graph, "Belgica") == []


# --- amounts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "what"),
    [
        ("have length in metres", ("length", "metres")),
        ("be long", ("length", "")),
        ("be 39 metres long", None),
        ("have maximum depth", ("maximum depth", "")),
        ("weigh in tonnes", None),
        ("have area in square miles", ("area", "square miles")),
        ("have population", None),
        ("have age in years", None),
        ("live at length in Paris", None),
    ],
)
def test_which_relations_give_a_measure(relation, what):
    found = parse_measure(NamedNode(v.relation_iri(relation)))
    assert found == what or (what is None and found is None)


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ("39 metres", "128 feet", False),
        ("39 metres", "120 feet", True),
        ("400 tons", "402 tons", False),
        ("400 tons", "460 tons", True),
        ("3.5 km", "3,500 m", False),
        ("3.5 km", "3,700 m", True),
        ("about 40 m", "45 m", False),
        ("402 tons", "402 tonnes", False),
        ("402 tons", "500 kg", False),
        ("2 square miles", "518 hectares", False),
        ("2.0 square miles", "600 hectares", True),
    ],
)
def test_amounts_differ_beyond_rounding_and_unit(one, other, differ):
    first, second = amount_of(Literal(one)), amount_of(Literal(other))
    assert first is not None
    assert second is not None
    assert first.differs(second) == second.differs(first) == differ


@pytest.mark.parametrize("said", ["more than 30 metres", "30 to 40 m", "long", "30 spans", "-", ""])
def test_what_is_no_plain_amount_is_not_compared(said):
    assert amount_of(Literal(said)) is None


@given(st.integers(1, 10**6), st.sampled_from([(0.3048, "feet"), (1000.0, "km"), (1.0, "m")]))
def test_the_same_length_rounded_in_any_unit_is_no_disagreement(metres, unit):
    size, name = unit
    exact, rounded = (
        amount_of(Literal(f"{metres} m")),
        amount_of(Literal(f"{metres / size:.3f} {name}")),
    )
    assert exact is not None
    assert rounded is not None
    assert not exact.differs(rounded)
