"""TrustGraph's knowledge cores, made by msgpack as its own commands write them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

import tgraph
from tests.support.workers import knowledge
from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.extensions.interchange import import_graph
from tgraph.extensions.interchange.graphs.core_messages import read_core

VALUES = {"embedding.provider": "hashing"}
E, R = "http://trustgraph.ai/e/", "http://trustgraph.ai/r/"
CHUNK, DOCUMENT = "urn:chunk:1", "https://example.org/doc/1"
TEXT = "The survey is old. Ada Byron wrote to Charles Babbage in 1833. He built engines in London."
SOURCE = "urn:graph:source"
VECTOR = [0.25, -1.5, 3.0]


@pytest.fixture
def graph(tmp_path) -> Iterator[KnowledgeGraph]:
    with tgraph.open(tmp_path / "g", create=True, settings=VALUES) as opened:
        yield opened


def packed(*messages: Any) -> list[bytes]:
    return [msgpack.packb(message, use_bin_type=True) for message in messages]


def iri(value: str) -> dict[str, Any]:
    return {"t": "i", "i": value}


def text(value: str, **kind: str) -> dict[str, Any]:
    return {"t": "l", "v": value, **kind}


def triple(s: Any, p: str, o: Any, graph: str = "") -> dict[str, Any]:
    told = {"s": s, "p": iri(p), "o": o}
    return {**told, "g": graph} if graph else told


def triples(*told: dict[str, Any]) -> tuple[str, Any]:
    return "t", {"m": {"i": DOCUMENT, "m": DOCUMENT, "c": "default"}, "t": list(told)}


def library(name: str, kind: str, said: bytes, parent: str = "") -> list[tuple[str, Any]]:
    about = {"i": name, "k": kind, "t": name[-6:], "p": parent, "d": "source", "c": "", "g": []}
    return [("lm", about), ("lb", {"i": name, "d": b64encode(said).decode()})]


ADA, BABBAGE = iri(E + "ada-byron"), iri(E + "charles-babbage")
WROTE = triple(ADA, R + "wrote-to", BABBAGE)
NAMES = [
    triple(ADA, str(v.RDFS_LABEL.value), text("Ada Byron")),
    triple(BABBAGE, str(v.RDFS_LABEL.value), text("Charles Babbage")),
]
BORN = triple(ADA, R + "born", text("1815", dt=v.XSD + "gYear"))
READ = [
    triple(iri("urn:subgraph:1"), v.TG + "contains", {"t": "t", "tr": WROTE}, SOURCE),
    triple(iri("urn:subgraph:1"), v.PROV + "wasDerivedFrom", iri(CHUNK), SOURCE),
    triple(iri(CHUNK), v.PROV + "wasDerivedFrom", iri(DOCUMENT), SOURCE),
]
VECTORS = ("ge", {"m": {"i": DOCUMENT, "m": "", "c": "default"}, "e": [{"e": ADA, "v": VECTOR}]})


def taken(graph: KnowledgeGraph, tmp_path: Path, *parts: bytes, name: str = "a.core") -> Any:
    (tmp_path / name).write_bytes(b"".join(parts))
    return import_graph(graph, [tmp_path / name])


def evidence(graph: KnowledgeGraph, predicate: NamedNode, end: str = "wrote-to") -> set[str]:
    """What is said of all evidence of Ada's statement."""
    objects = graph.opened.read().match(
        NamedNode(ADA["i"]), NamedNode(R + end), None, v.KNOWLEDGE_GRAPH
    )
    found = set()
    for quad in objects:
        assert isinstance(quad.object, NamedNode | Literal)
        edge = NamedNode(v.edge_iri(quad.subject, quad.predicate, quad.object))
        for one in graph.opened.read().match(None, v.tg("edge"), edge, v.SOURCE_GRAPH):
            told = graph.opened.read().match(one.subject, predicate, None, v.SOURCE_GRAPH)
            found |= {str(each.object.value) for each in told}  # type: ignore[union-attr]
    return found


def is_sound(graph: KnowledgeGraph) -> bool:
    passed = all(graph.audit(name).passed for name in ("knowledge", "shapes"))
    return bool(passed and graph.integrity().ok)


@pytest.mark.slow
def test_triples_rest_on_their_lines_with_what_they_are(graph, tmp_path):
    blank = {"t": "b", "d": "_:x 1"}
    more = [
        triple(ADA, R + "lives-at", blank),
        triple(blank, str(v.RDFS_LABEL.value), text("Adresse", ln="de")),
    ]
    report = taken(graph, tmp_path, *packed(triples(*NAMES, WROTE, BORN), VECTORS, triples(*more)))
    assert (report.relationships, report.skipped) == (3, ())
    wrote, born = f"<{E}ada-byron> <{R}wrote-to>", f"<{E}ada-byron> <{R}born> "
    assert evidence(graph, v.tg("quote")) == {f"{wrote} <{E}charles-babbage> ."}
    assert evidence(graph, v.tg("quote"), "born") == {f'{born}"1815"^^<{v.XSD}gYear> .'}
    assert "Charles Babbage" in graph.ask("Whom did Ada Byron write to?", "graph").text
    assert is_sound(graph)
    again = taken(graph, tmp_path, (tmp_path / "a.core").read_bytes())
    assert again.unchanged
    assert not again.relationships


def test_what_a_chunk_states_rests_on_its_sentence_where_the_core_has_the_text(graph, tmp_path):
    parts = packed(
        triples(*NAMES, WROTE, BORN, *READ),
        VECTORS,
        *library(DOCUMENT, "application/pdf", b"%PDF-1.7 \xff\xfe"),
        *library("urn:page:1", "text/plain", f"A page.\n\n{TEXT}\n".encode(), DOCUMENT),
        *library(CHUNK, "text/plain", TEXT.encode(), "urn:page:1"),
    )
    report = taken(graph, tmp_path, *parts)
    assert not report.skipped
    sentence = "Ada Byron wrote to Charles Babbage in 1833."
    assert evidence(graph, v.tg("quote")) == {sentence}
    assert evidence(graph, v.prov("hadPrimarySource")) == {CHUNK, DOCUMENT}
    assert len(evidence(graph, v.tg("quote"), "born")) == 1  # nobody says where: its line
    (page,) = [one for one in graph.documents.summaries() if one.path.endswith("page:1")]
    assert graph.documents.read_text(page.document)[9 : 9 + len(TEXT)] == TEXT
    assert is_sound(graph)
    assert taken(graph, tmp_path, b"".join(parts)).relationships == 0


def test_the_first_generations_are_read(graph, tmp_path):
    def term(value: str, *, uri: bool = True) -> dict[str, Any]:
        return {"v": value, "e": uri}

    label, name = term(str(v.RDFS_LABEL.value)), term("Ada Byron", uri=False)
    about = {"s": term(DOCUMENT), "p": label, "o": term("The letters", uri=False)}
    told = {"s": term(ADA["i"]), "p": term(R + "wrote-to"), "o": term(BABBAGE["i"])}
    head = {"i": "core", "m": [about], "u": "trustgraph", "c": "default"}
    report = taken(
        graph,
        tmp_path,
        *packed(
            ["t", {"m": head, "t": [told, {"s": term(ADA["i"]), "p": label, "o": name}]}],
            ["t", {"m": head, "t": [told]}],  # the same twice is one statement
            ["ge", {"m": head, "v": [VECTOR], "e": term(ADA["i"])}],
            ["de", {"m": head, "c": [{"c": TEXT, "v": [VECTOR]}]}],
            ["de", {"m": head, "c": [{"i": CHUNK, "v": VECTOR}, {"c": CHUNK, "v": VECTOR}]}],
        ),
    )
    assert (report.relationships, report.skipped) == (1, ())
    assert len(evidence(graph, v.tg("quote"))) == 1
    assert "The letters" in str(knowledge(graph.opened.read()))
    assert TEXT in [graph.documents.read_text(one.document) for one in graph.documents.summaries()]
    assert is_sound(graph)


def test_a_message_that_cannot_be_read_is_told_with_its_place_and_the_rest_is_kept(graph, tmp_path):
    good = packed(triples(*NAMES), triples(WROTE), triples(BORN))
    odd = [triple(ADA, "no iri", BABBAGE), {"s": ADA, "p": ADA}, triple({"t": "?"}, R, ADA)]
    strange = packed(triples(*odd), ("xx", {}), ("t", {"m": {}}))
    broken = b"\x92\xa1t\x82\xa1m\xc1\x00"
    parts = [good[0], broken, good[1], *strange, good[2], good[0][:-9]]
    report = taken(graph, tmp_path, *parts)
    assert report.relationships == 2
    starts = [sum(map(len, parts[:n])) for n in range(len(parts))]
    places = [(one.row, one.reason.split(":")[0]) for one in report.skipped]
    wrong = (1, 3, 3, 3, 4, 5, 7)
    assert places == [(at + 1, f"at byte {starts[at]:,}") for at in wrong]
    reasons = [one.reason for one in report.skipped]
    assert "triple 2: it lacks a subject, predicate or object" in reasons[2]
    assert "'xx'" in reasons[4]
    assert reasons[-1].endswith("The message has no end; what follows is left out")
    assert is_sound(graph)


def test_what_only_begins_like_a_core_is_refused(graph, tmp_path):
    report = taken(graph, tmp_path, b"\x92\xa1t\x81\xa1t\xdd\xff\xff\xff\xff" + b"\x90" * 50)
    assert [str(error) for error in report.failed] == [
        "It holds no message of a knowledge core that can be read."
    ]


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_whatever_is_damaged_the_messages_beside_it_are_kept(data):
    parts = packed(*(triples(triple(ADA, f"{R}{n}", BABBAGE)) for n in range(6)), VECTORS)
    hit = data.draw(st.integers(1, 3))
    part, at = parts[hit], data.draw(st.integers(0, len(parts[hit]) - 1))
    kind = data.draw(st.sampled_from(("change", "cut", "end")))
    rest = {"change": bytes([data.draw(st.integers(0, 255))]), "cut": b"", "end": b""}[kind]
    parts[hit] = part[:at] + rest + (b"" if kind == "end" else part[at + 1 :])
    found = read_core(b"".join(parts), "a.core", lambda row: None)
    kept = {n for n in range(6) if any(f"<{R}{n}>" in line for line in found.lines)}
    assert kept >= set(range(6)) - {hit}
