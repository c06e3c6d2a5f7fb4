"""Real replies, recorded elsewhere, given again to the prompts that they fit."""

from __future__ import annotations

import json

import pytest

from tests.support.shared_data import shared
from tgraph import vocabulary as v
from tgraph.engine.components import Components
from tgraph.engine.graph import open_graph
from tgraph.errors import UsageError
from tgraph.index.reports.report import read_reports
from tgraph.index.sources import Texts, document_of_chunk, page_of_chunk, range_of_chunk, text_value
from tgraph.index.standing_knowledge import term_value
from tgraph.model import Prompt
from tgraph.models.base import ChatModel, ChatRequest
from tgraph.retrieve.modes.registry import MODES
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, RecordedModel, read_recorded

ARCHER = '("entity"<|>"Colin Archer"<|>"person"<|>"Archer built the polar ship Fram.")'
NANSEN = '("entity"<|>"Fridtjof Nansen"<|>"person"<|>"Nansen drifted across the Arctic Ocean.")'
BAKER = '("entity"<|>"The Baker"<|>"person"<|>"A baker kneads dough before the shop opens.")'


def asked(step: str, **data: str) -> ChatRequest:
    shown = "\n".join(f"<<<{name}\n{text}\n{name}>>>" for name, text in data.items())
    return ChatRequest(Prompt(step, "", "0" * 64), [{"role": "user", "content": shown}])


def test_a_passage_gets_the_reply_that_speaks_of_it():
    model: ChatModel = RecordedModel([BAKER, NANSEN, ARCHER])
    text = "Colin Archer built the ship Fram, in which Fridtjof Nansen drifted over the Ocean."
    assert model.complete(asked("extract_graph", TEXT=text)).text == ARCHER
    assert model.complete(asked("extract_graph_more", TEXT=text)).text == NANSEN
    nothing = model.complete(asked("extract_graph", TEXT="Quantum chromodynamics.")).text
    assert json.loads(nothing) == {"entities": [], "relationships": [], "attributes": []}
    assert isinstance(model, RecordedModel)
    assert model.used == {NANSEN, ARCHER}


REPORT = {
    "title": "The Fram",
    "summary": "Colin Archer and Fridtjof Nansen and the Fram.",
    "rating": 6,
    "rating_explanation": "A famous ship.",
    "findings": [
        {"summary": "Archer", "explanation": "Colin Archer built it. [Data: Entities (7, 8)]"},
        {"summary": "The voyage", "explanation": "Fridtjof Nansen sailed in the Fram."},
        {"summary": "Nobody", "explanation": "There is no more to it."},
    ],
}
DATA = {
    "ENTITIES": "\n".join(
        json.dumps({"id": f"E{n}", "name": name})
        for n, name in enumerate(["Fridtjof Nansen", "the Fram", "Colin Archer"], 1)
    ),
    "RELATIONSHIPS": json.dumps({"id": "R1", "edge": "Fridtjof Nansen | sail in | Fram"}),
}


def test_a_community_gets_the_report_that_speaks_of_it_and_the_findings_cite_what_they_name():
    other = {**REPORT, "title": "Bread", "summary": "Bakers.", "findings": []}
    model = RecordedModel([json.dumps(other), json.dumps(REPORT)])
    said = json.loads(model.complete(asked("community_report", **DATA)).text)
    assert said["title"] == "The Fram"
    assert [f["citations"] for f in said["findings"]] == [["E3"], ["R1"], []]
    assert said["findings"][0]["explanation"] == "Colin Archer built it."
    assert model.used == {json.dumps(REPORT)}
    elsewhere = asked("community_report", ENTITIES=json.dumps({"id": "E1", "name": "Quark"}))
    assert json.loads(model.complete(elsewhere).text)["title"] == "Quark"  # as any fake says


@pytest.mark.parametrize(
    "data", [["a", "b"], {"k": "a", "l": "b"}, {"k": {"return": "a"}, "l": "b"}]
)
def test_recorded_replies_are_read_from_json(data, tmp_path):
    path = tmp_path / "replies.json"
    path.write_text(json.dumps(data), "utf-8")
    assert read_recorded(path) == ["a", "b"]


def test_what_holds_no_replies_is_refused(tmp_path):
    path = tmp_path / "replies.json"
    for data in ("7", '[{"reply": "a"}]'):
        path.write_text(data, "utf-8")
        with pytest.raises(UsageError, match="no recorded replies"):
            read_recorded(path)


@pytest.fixture(scope="module")
def carol(tmp_path_factory):
    folder = shared("christmas_carol")
    home = tmp_path_factory.mktemp("carol")
    model = RecordedModel(read_recorded(folder / "mock_cache.json"))
    parts = Components(load_settings(None), home / "cache", chat=model, embedder=HashingEmbedder())
    with open_graph(home, create=True, parts=parts) as graph:
        report = graph.index([str(folder / "mock_data.txt")])
    return home, report, model


def test_real_replies_become_a_graph_with_exact_evidence(carol):
    home, report, model = carol
    assert report.chunks == 42
    assert model.count("extract_graph") == 42
    assert report.entities > 500
    assert report.relationships > 400
    assert len(model.used) > 70  # of 84
    with open_graph(home) as graph:
        store = graph.opened.read()
        texts = Texts(store, graph.opened.librarian)
        quoted = whole = 0
        for quad in store.match(None, v.tg("edge"), None, v.SOURCE_GRAPH):
            chunk, start, length, quote = (
                text_value(store, term_value(quad.subject), predicate)
                for predicate in (
                    v.prov("wasDerivedFrom"),
                    v.tg("charOffset"),
                    v.tg("charLength"),
                    v.tg("quote"),
                )
            )
            span = int(start), int(start) + int(length)
            if quote:
                text = texts.of_page(document_of_chunk(chunk), page_of_chunk(chunk))
                assert quote == text[slice(*span)]
                quoted += 1
            else:
                assert span == range_of_chunk(chunk)
                whole += 1
        assert quoted > 5 * whole


def test_real_reports_become_reports_on_the_communities(carol):
    home, indexed, model = carol
    recorded = {json.loads(reply)["title"] for reply in model.used if '"findings"' in reply}
    assert len(recorded) > 10
    with open_graph(home) as graph:
        store = graph.opened.read()
        reports = list(read_reports(store).values())
    assert len(reports) == indexed.reports
    titles = [report.title for report in reports]
    assert sum(title in recorded for title in titles) > len(titles) / 2
    findings = [finding for report in reports for finding in report.findings]
    assert all(finding.cites for finding in findings)
    assert not any("[Data:" in finding.explanation for finding in findings)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [m for m in MODES if m not in ("bypass", "sparql")])
def test_a_question_is_answered_over_that_graph_in_every_mode(carol, mode):
    home, _, _ = carol
    settings = load_settings(None, {"embedding.provider": "hashing", "chat.provider": "embedded"})
    with open_graph(home, parts=Components(settings, home / "cache")) as graph:
        answer = graph.ask("Who came into the ball of Fezziwig with a music-book?", mode=mode)
        assert not answer.no_evidence
        assert "Fezziwig" in answer.text
        document = next(iter(answer.sources)).document
        text = Texts(graph.opened.read(), graph.opened.librarian).of_page(document, None)
        for sentence in answer.sentences:
            assert sentence.citations
            assert all(text[c.start : c.end] == c.quote for c in sentence.citations)
