"""Global search over real HTTP and without a model: batches, points, ratings, and faults."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

import tgraph
from tests.support.corpora import made
from tgraph import vocabulary as v
from tgraph.answer.report_batches import build_batches, fits_of, format_rows, whole_cost
from tgraph.cli.main import cli
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import ModelError, UsageError
from tgraph.explain.audit.shacl import check_shapes
from tgraph.explain.render.answer import find_verbatim_quote
from tgraph.index.evidence import stored_evidence
from tgraph.index.reports.report_table import ReportCounts, stored_reports
from tgraph.index.sources import Texts
from tgraph.model import Candidate, CommunityReport, Finding, Turn
from tgraph.models.tokens import DEFAULT_ENCODING, count_tokens
from tgraph.retrieve.base import BoundedCache, Question
from tgraph.retrieve.candidates import cost_of
from tgraph.retrieve.reports import Reports, item_of
from tgraph.retrieve.text.question_analysis import is_broad
from tgraph.testing import Fault, ScriptedServer
from tgraph.testing.script import parse_blocks

NAMES = [f"{name} Smith" for name in ("Ada", "Bea", "Cid", "Dov", "Eve", "Fay", "Gus", "Hal")]
NAMES += [f"{name} Jones" for name in ("Ida", "Jon", "Kay", "Lea", "Max", "Ned", "Ola", "Pam")]
TEXTS = {
    "friends.txt": " ".join(
        f"{a} taught {b} the flute. {a} met {b} in Rome." for a, b in pairwise(NAMES)
    ),
    "ships.txt": "Colin Archer built the Fram in Larvik. The Fram carried Fridtjof Nansen north.",
    "radium.txt": "Marie Curie discovered Polonium in Paris. Pierre Curie helped Marie Curie.",
}
QUESTION = "Who taught whom the flute?"
CATALOGUE = v.collection_iri("explainability")


def as_read(kg: KnowledgeGraph) -> Reports:
    store = kg.opened.read()
    return Reports(stored_reports(store), stored_evidence(store, Texts(store, kg.opened.librarian)))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph whose communities have several levels."""
    folder = tmp_path_factory.mktemp("global")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    with ScriptedServer() as server, opened(folder, server) as kg:
        assert not kg.index([folder / name for name in TEXTS]).failed
    return folder


@contextmanager
def opened(
    root: Path, server: ScriptedServer | None, concurrency: int = 4, **settings: Any
) -> Iterator[KnowledgeGraph]:
    values: dict[str, Any] = {
        "embedding.provider": "hashing",
        "extract.gleanings": 0,
        "communities.max_size": 4,
        "chat.retries": 0,
        "chat.concurrency": concurrency,
    }
    if server is not None:
        values |= {"chat.base_url": server.base_url, "chat.api_key": "k", "chat.model": "scripted"}
    values |= {f"global_search.{name}": value for name, value in settings.items()}
    with tgraph.open(root / "graph", create=True, settings=values) as kg:
        yield kg


def points(*rows: dict[str, Any]) -> str:
    return json.dumps({"points": list(rows)})


def shown(request: Any) -> list[dict[str, Any]]:
    """The reports that a request for points shows."""
    return [
        json.loads(line) for line in parse_blocks(request.body["messages"])["REPORTS"].splitlines()
    ]


def first_finding(request: Any) -> dict[str, Any]:
    report = next(report for report in shown(request) if report["findings"])
    found = report["findings"][0]
    assert isinstance(found, dict)
    return found


# --- batches ------------------------------------------------------------------------------------


def report(number: int, findings: int, words: int) -> CommunityReport:
    text = " ".join(f"word{number}" for _ in range(words))
    return CommunityReport(
        iri=f"{v.URN}report:{number:040d}",
        community=f"{v.URN}community:0:{number:040d}",
        level=0,
        title=f"Report {number}",
        summary="A summary.",
        rating=float(number % 11),
        rating_explanation="",
        findings=tuple(
            Finding(f"{v.URN}finding:{number:040d}:{n}", f"Finding {n}", text)
            for n in range(findings)
        ),
    )


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 60)), min_size=1, max_size=25),
    st.integers(40, 400),
    st.integers(0, 5),
)
def test_every_report_is_in_one_batch_or_rejected_and_budgets_hold(sizes, room, seed):
    reports = {r.iri: r for r in (report(n, *size) for n, size in enumerate(sizes))}
    candidates = [Candidate(item_of(r), n, 0.5) for n, r in enumerate(reports.values(), 1)]
    fits = fits_of(list(reports.values()), room, DEFAULT_ENCODING, BoundedCache(10))
    assert fits == fits_of(list(reports.values()), room, DEFAULT_ENCODING, BoundedCache(100))
    before = random.getstate()
    found = build_batches(candidates, reports, fits, room, seed)
    assert random.getstate() == before
    ranked = [c for batch in found.batches for c in batch.candidates]
    everything = ranked + [rejected.candidate for rejected in found.rejected]
    assert sorted(c.item.iri for c in everything) == sorted(reports)
    assert [c.rank for c in everything] == list(range(1, len(everything) + 1))
    for batch in found.batches:
        chosen = [
            (reports[c.item.iri], n) for c, n in zip(batch.candidates, batch.findings, strict=True)
        ]
        assert count_tokens(format_rows(chosen, BoundedCache(9)).text) <= batch.tokens <= room
        assert list(batch.candidates) == sorted(
            batch.candidates, key=lambda c: (-c.score, -reports[c.item.iri].rating, c.item.iri)
        )
    shortened = sum(len(reports[i].findings) - f.findings for i, f in fits.items() if f)
    assert found.dropped.get("finding with no room in a batch", 0) == shortened
    assert build_batches(candidates[::-1], reports, fits, room, seed).batches == found.batches


def test_the_reports_of_a_level_leave_out_nobody(root):
    with opened(root, None) as kg:
        reports = as_read(kg)
    levels = {community.level for community in reports.communities.values()}
    assert len(levels) > 1
    everybody = {m for c in reports.communities.values() for m in c.members}
    for level in range(max(levels) + 2):
        chosen = [reports.communities[r.community] for r in reports.at_level(level)]
        assert all(community.level <= level for community in chosen)
        assert {member for community in chosen for member in community.members} == everybody
        assert not reports.untold(level)


def test_occurrence_counts_chunks_under_every_name(root):
    with opened(root, None) as kg:
        reports = as_read(kg)
    assert {reports.occurrences(r) for r in reports.by_iri.values()} == {1}


def test_what_lies_ready_is_what_the_store_says(root):
    with ScriptedServer() as server, opened(root, server) as kg:
        ready = kg.opened.context().reports()
        assert ready is not None
        reports = as_read(kg)
        assert ready.communities() == dict(reports.communities)
        assert ready.reports() == dict(reports.by_community)
        assert ready.encoding == DEFAULT_ENCODING
        for iri, report in reports.by_iri.items():
            cost, tokens = cost_of(item_of(report)), whole_cost(report, DEFAULT_ENCODING)
            assert ready.counts(iri) == ReportCounts(reports.occurrences(report), cost, tokens)
            assert ready.tokens()[iri] == tokens


def test_without_what_lies_ready_the_answer_is_the_same(root, tmp_path):
    shutil.copytree(root, tmp_path / "copy")
    for file in (tmp_path / "copy").rglob("communities.????????????????"):
        file.write_bytes(file.read_bytes()[:-1])
    found = []
    for place in (root, tmp_path / "copy"):
        with ScriptedServer() as server, opened(place, server, map_context_tokens=900) as kg:
            assert (kg.opened.context().reports() is None) == (place != root)
            answer = kg.ask(QUESTION, "global", history=[])
            sent = sorted(str(request.body) for request in server.requests)
            found.append((answer.text, [b.reports for b in kg.trace().batches], sent))
    assert found[0] == found[1]


# --- by a model ---------------------------------------------------------------------------------


def test_points_answer_with_the_way_down_to_the_characters(root):
    with ScriptedServer() as server, opened(root, server, map_context_tokens=900) as kg:
        answer = kg.ask(QUESTION, "global", history=[])
        trace = kg.trace()
        assert server.count("map_points") == len(trace.batches) > 1
    assert answer.sentences
    for sentence in answer.sentences:
        for citation in sentence.citations:
            assert TEXTS[Path(citation.path).name][citation.start : citation.end] == citation.quote
            assert (citation.kind, citation.edge) == ("report", None)
            kinds = [iri.split(":")[2] for iri in citation.via]
            assert kinds[0] == "report"
            assert kinds[1] == "finding"
            assert kinds[-1] in ("edge", "entity")
    for traced, said in zip(trace.sentences, answer.sentences, strict=True):
        assert [c.via for c in traced.citations] == [c.via for c in said.citations]
        assert all(len(c.way) == len(c.via) for c in traced.citations)
    made = [point for batch in trace.batches for point in batch.points]
    used = {item.item for item in trace.selected}
    assert {point.iri for point in made if not point.rejected} == used
    assert all(batch.tokens <= 900 for batch in trace.batches)


def test_the_same_question_has_the_same_record(root):
    def asked(concurrency: int) -> str:
        with ScriptedServer() as server:
            values = {"map_context_tokens": 900, "dynamic": True}
            with opened(root, server, concurrency, **values) as kg:
                answer = kg.ask(QUESTION, "global", history=[])
                trace = kg.trace()
            told = (answer.text, trace.batches, trace.ratings, trace.selected, trace.rejected)
            return repr(told).replace(answer.session.rpartition(":")[2], "")

    assert asked(1) == asked(4)


@pytest.mark.slow
def test_every_session_conforms_to_the_shapes(root):
    spoilt = [Fault("unknown_ids", "map_points", nth=1), Fault("prose", "rate_report", times=2)]
    with (
        ScriptedServer(faults=spoilt) as server,
        opened(root, server, map_context_tokens=900, dynamic=True) as kg,
    ):
        kg.ask(QUESTION, "global", history=[])
        kg.ask("Is there cheese on the moon?", "global", history=[])
        assert not check_shapes(kg.opened.read(), CATALOGUE)


def broken_for(text: str, reply: str) -> Callable[[Any], str]:
    """A reply to the batches that show the text, and a plausible point from the others."""

    def answer(request: Any) -> str:
        if text in parse_blocks(request.body["messages"])["REPORTS"]:
            return reply
        found = first_finding(request)
        return points({"description": found["finding"], "score": 70, "citations": [found["id"]]})

    return answer


@pytest.mark.slow
@pytest.mark.parametrize(
    "reply", ["I would rather not say.", '{"points": [{"descr', '{"points": 7}']
)
def test_a_reply_that_is_no_json_costs_its_batch_alone(root, reply):
    with (
        ScriptedServer({"map_points": broken_for("Fram", reply)}) as server,
        opened(root, server, map_context_tokens=900) as kg,
    ):
        answer = kg.ask(QUESTION, "global", history=[])
        trace = kg.trace()
        assert not check_shapes(kg.opened.read(), CATALOGUE, answer.session)
    assert answer.sentences
    lost = [batch for batch in trace.batches if batch.error]
    assert len(lost) == 1
    assert not lost[0].points
    assert "map_points" in lost[0].error
    assert lost[0].dropped == {"batch whose reply can't be used": 1}


def test_replies_that_are_all_useless_are_a_failure_and_not_an_answer(root):
    with ScriptedServer({"map_points": "No."}) as server, opened(root, server) as kg:
        with pytest.raises(ModelError, match="map_points"):
            kg.ask(QUESTION, "global", history=[])
        assert kg.trace().status == "failed"


def test_what_a_point_lacks_costs_that_point_alone(root):
    long = " ".join(["flute"] * 60)

    def answer(request: Any) -> str:
        found = first_finding(request)
        good = {"description": f"Good. [{found['id']}]", "score": "80", "citations": []}
        return points(
            good,
            {**good, "score": 20},
            {"description": "Made up.", "score": 90, "citations": ["deadbeef"]},
            {"description": "Nothing cited.", "score": 90, "citations": []},
            {"description": long, "score": 90, "citations": [found["id"]]},
            {"description": "", "score": 90, "citations": [found["id"]]},
            {"description": "No score.", "score": "high", "citations": [found["id"]]},
            {"description": "Of no help.", "score": 0, "citations": [found["id"], "deadbeef"]},
        )

    with (
        ScriptedServer({"map_points": answer}) as server,
        opened(root, server, map_max_length=50) as kg,
    ):
        kg.ask(QUESTION, "global", history=[])
        trace = kg.trace()
    (batch,) = trace.batches
    assert [(p.text, p.score, p.rejected) for p in batch.points] == [
        ("Good.", 0.8, ""),
        ("Of no help.", 0.0, "the point does not help to answer the question"),
    ]
    assert batch.dropped == {
        "point that was made before": 1,
        "citation of an id that was not shown": 2,
        "point without a citation that holds": 2,
        "point over the length of a reply": 1,
        "malformed row": 2,
    }
    assert [item.item for item in trace.selected] == [batch.points[0].iri]


@pytest.mark.parametrize("kind", ["unknown_ids", "over_long", "empty", "truncated_json", "length"])
def test_faults_of_the_wire_are_survived(root, kind):
    faults = [Fault(kind, "map_points", nth=1)]
    with (
        ScriptedServer(faults=faults) as server,
        opened(root, server, map_context_tokens=900) as kg,
    ):
        answer = kg.ask(QUESTION, "global", history=[])
        trace = kg.trace()
    assert trace.status == "completed"
    assert answer.sentences
    assert all(c.quote for s in answer.sentences for c in s.citations)
    assert answer.dropped == trace.dropped
    if kind == "unknown_ids":
        assert trace.dropped["citation of an id that was not shown"] >= 1
        assert trace.dropped["point without a citation that holds"] >= 1


def test_no_point_is_no_evidence_and_exit_code_3(root, monkeypatch):
    from click.testing import CliRunner

    with ScriptedServer({"map_points": points()}) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        options = ["--base-url", server.base_url, "--embedding-provider", "hashing"]
        asked = ["ask", "-r", str(root / "graph"), "-m", "global", "-q", QUESTION, "--json"]
        result = CliRunner().invoke(cli, [*asked, *options])
        assert server.count("synthesise_answer") == 0
    assert result.exit_code == 3
    assert json.loads(result.stdout)["no_evidence"] is True


def test_points_over_the_budget_of_the_reduce_are_rejected_with_the_reason(root):
    with ScriptedServer() as server:
        with opened(root, server, map_context_tokens=900, reduce_context_tokens=560) as kg:
            kg.ask(QUESTION, "global", history=[])
            trace = kg.trace()
        sent = server.requests[-1].body["messages"]
    assert server.requests[-1].step == "synthesise_answer"
    assert count_tokens("\n".join(message["content"] for message in sent)) <= 560
    reasons = [point.rejected for batch in trace.batches for point in batch.points]
    assert any("token budget" in reason for reason in reasons)
    assert "" in reasons


def test_a_question_without_room_for_a_report_is_said(root):
    with (
        ScriptedServer() as server,
        opened(root, server, map_context_tokens=600) as kg,
        pytest.raises(UsageError, match="map_context_tokens"),
    ):
        kg.ask(QUESTION, "global", history=[Turn("Who?", "Ada Smith. " * 200)])


# --- dynamic selection --------------------------------------------------------------------------


def rate(wanted: str) -> Callable[[Any], str]:
    def answer(request: Any) -> str:
        rating = 4 if wanted in parse_blocks(request.body["messages"])["REPORT"] else 0
        return json.dumps({"reason": f"It is about {wanted}.", "rating": rating})

    return answer


def test_only_what_is_relevant_is_divided_and_read(root):
    with (
        ScriptedServer({"rate_report": rate("Jones")}) as server,
        opened(root, server, dynamic=True) as kg,
    ):
        kg.ask(QUESTION, "global", history=[])
        trace, reports = kg.trace(), as_read(kg)
    top = {c.iri for c in reports.communities.values() if c.level == 0}
    by_level: dict[int, set[str]] = {}
    for rating in trace.ratings:
        by_level.setdefault(rating.level, set()).add(reports.by_iri[rating.report].community)
        assert rating.relevant == (rating.score == 0.8)
    assert by_level[0] == top
    relevant = {reports.by_iri[r.report].community: r for r in trace.ratings if r.relevant}
    for iri in by_level[1]:
        assert reports.communities[iri].parent in relevant
    read = {reports.by_iri[r].community for b in trace.batches for r in b.reports}
    divided = {reports.communities[iri].parent for iri in relevant}
    assert read == set(relevant) - divided


def test_the_budget_of_calls_holds_and_keeps_whole_what_it_can_not_divide(root):
    with ScriptedServer({"rate_report": rate("Jones")}) as server:
        with opened(root, server, dynamic=True, dynamic_max_calls=4) as kg:
            answer = kg.ask(QUESTION, "global", history=[])
            trace, reports = kg.trace(), as_read(kg)
        assert server.count("rate_report") == len(trace.ratings) == 4
    assert trace.dropped["report that was not rated: over the limit of calls"] > 0
    assert answer.dropped == trace.dropped
    read = {reports.by_iri[r].level for b in trace.batches for r in b.reports}
    assert 0 in read


@pytest.mark.slow
def test_where_nothing_is_relevant_the_next_level_is_tried_and_then_nothing_is_read(root):
    with ScriptedServer({"rate_report": rate("nothing of the kind")}) as server:
        with opened(root, server, dynamic=True) as kg:
            answer = kg.ask(QUESTION, "global", history=[])
            trace = kg.trace()
            assert not check_shapes(kg.opened.read(), CATALOGUE, answer.session)
        assert server.count("map_points") == 0
    assert answer.no_evidence
    assert {rating.level for rating in trace.ratings} >= {0, 1}
    assert not trace.batches


def test_the_commonest_of_several_ratings_wins_and_the_highest_of_equally_common_ones(root):
    given = [json.dumps({"rating": rating}) for rating in (0, 3, 3, 0, 2, 1)]
    with ScriptedServer({"rate_report": given}) as server:
        repeated = {"dynamic_num_repeats": 3, "dynamic_max_calls": 6, "dynamic_max_level": 0}
        with opened(root, server, 1, dynamic=True, **repeated) as kg:
            kg.ask(QUESTION, "global", history=[])
            trace = kg.trace()
    assert sorted(rating.score or 0.0 for rating in trace.ratings) == [0.4, 0.6]


def test_a_rating_that_can_not_be_read_keeps_the_report_and_is_counted(root):
    with (
        ScriptedServer({"rate_report": "Hard to say."}) as server,
        opened(root, server, dynamic=True, dynamic_max_level=0) as kg,
    ):
        kg.ask(QUESTION, "global", history=[])
        trace = kg.trace()
    assert {(rating.score, rating.relevant) for rating in trace.ratings} == {(None, True)}
    assert trace.dropped["rating that can't be used"] == len(trace.ratings)
    assert sum(len(batch.reports) for batch in trace.batches) == len(trace.ratings)


# --- without a model ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True])
def test_the_embedded_default_quotes_what_answers(root, dynamic):
    with opened(root, None, dynamic=dynamic) as kg:
        answer = kg.ask("Who built the Fram?", "global", history=[])
        assert not check_shapes(kg.opened.read(), CATALOGUE, answer.session)
    assert "Colin Archer built the Fram in Larvik." in answer.text
    quotes = [s for s in answer.sentences if find_verbatim_quote(s)]
    assert quotes
    for sentence in quotes:
        assert [c.quote for c in sentence.citations] == [sentence.text]
    for sentence in answer.sentences:
        assert sentence.citations
        assert all(c.via for c in sentence.citations)


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_question_about_the_whole_is_answered_from_the_most_important_reports(root, dynamic):
    with opened(root, None, dynamic=dynamic) as kg:
        answer = kg.ask("What are the main themes?", "global", history=[])
        nothing = kg.ask("What are the main themes of astrophysics?", "global", history=[])
        verified = kg.verify(answer.session, lexical=True)
        assert not check_shapes(kg.opened.read(), CATALOGUE, answer.session)
    assert len({source.path for source in answer.sources}) == len(TEXTS)
    assert nothing.no_evidence
    judged = {sentence.text: sentence.verdict for sentence in verified.sentences}
    assert verified.is_supported
    assert {judged[s.text] for s in answer.sentences if find_verbatim_quote(s)} == {"quoted"}
    assert {judged[s.text] for s in answer.sentences if not find_verbatim_quote(s)} == {"undecided"}
    first, *rest = answer.sentences
    headings = [s for s in rest if not find_verbatim_quote(s)]
    assert first.text == f"Summary: {len(TEXTS)} documents on {len(headings)} themes."
    assert {s.lead for s in headings} == {"\n\n"}
    assert "Ships: 1 of 3 documents" in [s.text for s in headings]
    for heading, below in pairwise(rest):
        if not find_verbatim_quote(heading):
            assert find_verbatim_quote(below)
            assert below.lead == "\n- "
            assert {c.document for c in below.citations} <= {c.document for c in heading.citations}


@pytest.mark.parametrize(
    ("question", "broad"),
    [
        ("What are the main themes?", True),
        ("What are these documents about?", True),
        ("Give me an overview of the key people and events.", True),
        ("What are the main themes of astrophysics?", False),
        ("Who built the Fram?", False),
    ],
)
def test_breadth(question, broad):
    assert is_broad(Question(question)) == broad


def test_a_short_question_is_read_with_the_one_before_it():
    before = (Turn("Who built the Fram?", "Colin Archer."),)
    assert not is_broad(Question("And what about it?", before))


# --- settings and flags -------------------------------------------------------------------------


LICENCE = """Copyright (c) 2024 the Heron Foundation. All rights reserved by the Heron Foundation.

Permission is hereby granted by the Heron Foundation without warranty of any kind.

Volunteers of the Heron Foundation give each work away.

The Heron Foundation gives no warranty of merchantability and is not liable for damages.
"""
TOLD = {
    "ada.txt": "Ada built the Petrel at Larvik. Ada sailed the Petrel to Bergen with Bruno. "
    "Bruno mended the pump of the Petrel at Bergen. Ada paid Bruno in Bergen.",
    "carl.txt": "Carl kept pigeons at Skerrow. Carl sold pigeons to Dora at Skerrow market. "
    "Dora flew the pigeons of Carl from Skerrow to Oslo.",
}


def test_a_licence_is_no_theme_of_the_documents(tmp_path):
    texts = {name: f"{told}\n\n{LICENCE}" for name, told in TOLD.items()}
    with made(tmp_path, texts) as (kg, _):
        answer = kg.ask("What are the main themes?", "global", history=[])
    assert "Heron" not in answer.text
    assert {c.segment_kind for s in answer.sentences for c in s.citations} == {"prose"}


def test_flags_choose_the_level_and_dynamic_selection(root):
    from click.testing import CliRunner

    asked = ["ask", "-r", str(root / "graph"), "-m", "global", "-q", "Who built the Fram?"]
    flags = ["--embedding-provider", "hashing", "--community-level", "0"]
    flags += ["--dynamic-community-selection"]
    result = CliRunner().invoke(cli, [*asked, *flags])
    assert result.exit_code == 0, result.output
    with opened(root, None) as kg:
        trace = kg.trace()
    assert trace.parameters["community-level"] == "0"
    assert trace.parameters["dynamic"] == "true"
    assert trace.ratings


@pytest.mark.parametrize("mode", ["local", "drift"])
def test_the_flag_for_the_level_serves_every_mode_that_uses_reports(root, mode):
    from click.testing import CliRunner

    asked = ["ask", "-r", str(root / "graph"), "-m", mode, "-q", QUESTION]
    levels = []
    for flags in ([], ["--community-level", "0"]):
        given = [*asked, "--embedding-provider", "hashing", *flags]
        result = CliRunner().invoke(cli, given)
        assert result.exit_code in {0, 3}, result.output
        with opened(root, None) as kg:
            by_iri = as_read(kg).by_iri
            bundle = NamedNode(kg.sessions.summaries(1)[0].bundle)
            named = {quad.object for quad in kg.opened.read().match(None, None, None, bundle)}
        levels.append({r.level for iri, r in by_iri.items() if NamedNode(iri) in named})
    assert max(levels[0]) > 0
    assert levels[1] == {0}


def test_reports_below_the_least_rating_are_left_out_and_counted(root):
    with opened(root, None, min_rating=10.0) as kg:
        answer = kg.ask("Who built the Fram?", "global", history=[])
        assert answer.dropped == kg.trace().dropped
        assert answer.dropped["report rated too low"] > 0
    assert answer.no_evidence


def test_a_graph_without_reports_says_what_to_do(tmp_path):
    (tmp_path / "note.txt").write_text("nothing of note here")
    with opened(tmp_path, None) as kg:
        kg.index([tmp_path / "note.txt"])
        with pytest.raises(tgraph.TgraphError, match="community reports"):
            kg.ask("Who?", "global")
