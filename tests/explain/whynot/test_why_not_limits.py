"""Why-not names the limit in the way, with the rank that the expected has without it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode

import tgraph
from benchmarks.verify_faults import circles
from tgraph import vocabulary as v
from tgraph.engine.components import Components
from tgraph.engine.graph import KnowledgeGraph
from tgraph.explain.trace.values import Trace
from tgraph.explain.whynot.causes import WhyNot
from tgraph.index.sources import derived_items
from tgraph.retrieve.filters import NO_FILTERS, Filters
from tgraph.retrieve.search.surroundings import MOST_CHUNKS, MOST_REPORTS
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel
from tgraph.testing.script import parse_blocks

DAYS, CREW, PAIRS = 43, 8, 21
TEXTS = {
    "log.txt": "\n\n".join(
        f"Fram slept on the {n:02}th day, and nothing else of it was told." for n in range(DAYS)
    ),
    "crew.txt": " ".join(
        f"Fram carried Sailor{n:02}. Sailor{n:02} met Cook{n:02}." for n in range(CREW)
    ),
    "pairs.txt": " ".join(f"Vessel{n:02} met Pilot{n:02}." for n in range(PAIRS)),
}
QUESTION = "What did Fram carry?"
FRAM = {"local_search.include": ("Fram",), "local_search.top_k_entities": 1}


ONE_REPORT = {
    "drift_search.k": 1,
    "drift_search.top_k_entities": 1,
    "drift_search.depth": 1,
}


UNFILLED = {"local_search.max_context_tokens": 500}
"""So few that hardly a chunk is shown for its likeness alone."""


class Asking:
    """Asks one graph, with whatever replies and settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def open(self, replies: Any = None, **settings: Any) -> Iterator[KnowledgeGraph]:
        values = {"extract.gleanings": 0, "chunk.by": "sentences", "chunk.overlap": 0, **settings}
        parts = Components(
            load_settings(None, values),
            self.folder / "cache",
            chat=ScriptedModel(replies or {}),
            embedder=HashingEmbedder(),
        )
        with tgraph.open(self.folder / "graph", create=True, parts=parts, settings=values) as graph:
            yield graph

    def index(self, texts: dict[str, str], replies: Any = None, **settings: Any) -> None:
        for name, text in texts.items():
            (self.folder / name).write_text(text)
        with self.open(replies, **settings) as kg:
            assert not kg.index([self.folder / name for name in texts]).failed

    def ask(self, mode: str, *expected: str, **options: Any) -> tuple[Trace, list[WhyNot]]:
        """Ask with ``replies``, ``filters`` and settings, and why each of the expected is not
        there."""
        replies, filters = options.pop("replies", None), options.pop("filters", NO_FILTERS)
        with self.open(replies, **options) as kg:
            answer = kg.ask(QUESTION, mode, history=[], filters=filters)
            return kg.trace(answer.session), [kg.why_not(answer.session, x) for x in expected]


def reports_of(kg: KnowledgeGraph) -> dict[str, int]:
    """All reports with their level."""
    kind = v.tg("CommunityReport")
    store = kg.opened.read()
    reports = [quad.subject for quad in store.match(None, v.RDF_TYPE, kind, v.KNOWLEDGE_GRAPH)]
    found = {}
    for report in reports:
        level = next(store.match(report, v.tg("level"), None, v.KNOWLEDGE_GRAPH)).object
        assert isinstance(report, NamedNode)
        assert isinstance(level, Literal)
        found[report.value] = int(level.value)
    return found


def chunks_of(asking: Asking, name: str) -> list[str]:
    """The chunks of a document, by IRI."""
    with asking.open() as kg:
        (found,) = [d for d in kg.documents.summaries() if d.path.endswith(name)]
        return sorted(derived_items(kg.opened.read(), found.document, "Chunk"))


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Asking:
    found = Asking(tmp_path_factory.mktemp("limits"))
    found.index({name: TEXTS[name] for name in ("log.txt", "crew.txt")}, **{"chunk.size": 20})
    found.index({"pairs.txt": TEXTS["pairs.txt"]})
    return found


def known(trace: Trace) -> list[str]:
    """The candidates by rank."""
    every = sorted((*trace.selected, *trace.rejected), key=lambda item: item.rank)
    return [item.item for item in every]


def beyond(found: WhyNot) -> tuple[str | None, float | None, int | None]:
    assert found.cause == "beyond-limit", found.reason
    return found.limit, found.cutoff, found.rank


# --- local ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_local_search_considers_so_many_chunks(asking: Asking) -> None:
    days = chunks_of(asking, "log.txt")
    only = Filters(documents=("log.txt",))
    with asking.open(**FRAM, **UNFILLED) as kg:
        session = kg.ask(QUESTION, "local", history=[], filters=only).session
        taken = known(kg.trace(session))
        lost = [day for day in days if day not in taken]
        assert len(lost) == DAYS - MOST_CHUNKS
        found = [kg.why_not(session, day) for day in lost]
    assert {beyond(each) for each in found} == {
        ("most-chunks", MOST_CHUNKS, MOST_CHUNKS + n + 1) for n in range(len(lost))
    }


@pytest.mark.slow
def test_local_search_considers_so_many_reports(asking: Asking) -> None:
    wide = {
        "local_search.top_k_entities": 200,
        "local_search.top_k_relationships": 0,
    }
    with asking.open(**wide) as kg:
        session = kg.ask(QUESTION, "local", history=[]).session
        trace = kg.trace(session)
        lost = [report for report in reports_of(kg) if report not in known(trace)]
        found = {beyond(kg.why_not(session, report)) for report in lost[:3]}
    assert {(name, cutoff) for name, cutoff, _ in found} == {("most-reports", MOST_REPORTS)}
    assert len({rank for *_, rank in found if rank and rank > MOST_REPORTS}) == 3


@pytest.mark.slow
def test_what_leads_to_a_fact_or_document_is_too_unlike_the_question(asking: Asking) -> None:
    wide, _ = asking.ask("local", **{"local_search.top_k_entities": 200})
    order = [match.entity for match in wide.matches]
    facts = [f"Vessel{n:02} — met — Pilot{n:02}" for n in (0, 1)]
    one = {"local_search.top_k_entities": 1, **UNFILLED}
    _, found = asking.ask("local", *facts, "pairs.txt", **one)
    for n, each in enumerate(found[:-1]):
        rank = min(order.index(f"urn:trustgraph:entity:{who}{n:02}") for who in ("vessel", "pilot"))
        assert beyond(each) == ("top-k-entities", 1, rank + 1)
    first = next(n for n, iri in enumerate(order, 1) if "vessel" in iri or "pilot" in iri)
    assert beyond(found[-1]) == ("top-k-entities", 1, first)
    assert "the nearest entity named by the" in found[-1].reason


def test_an_entity_that_is_excluded_is_left_out_by_that_setting(asking: Asking) -> None:
    _, (found,) = asking.ask(
        "local", "Vessel03", **{"local_search.exclude": ("Vessel03",)}, **FRAM, **UNFILLED
    )
    assert beyond(found) == ("exclude", None, None)


# --- graph and ppr --------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", ["entity_limit", "triple_limit"])
def test_the_rank_of_what_the_subgraph_lacks_is_the_limit_that_lets_it_in(
    asking: Asking, limit: str
) -> None:
    tight = {"graph.entity_limit": 1, "graph.triple_limit": 30}
    cooks = [f"Cook{n:02}" for n in range(CREW // 2)]
    if limit == "triple_limit":
        tight["graph.triple_limit"] = 3
    _, found = asking.ask("graph", *cooks, **tight)
    lost = [each for each in found if each.limit == limit.replace("_", "-")]
    last = max(lost, key=lambda each: each.rank or 0)
    assert last.rank is not None
    assert last.rank > tight[f"graph.{limit}"]
    lifted = {**tight, "graph.entity_limit": 50, f"graph.{limit}": last.rank}
    assert asking.ask("graph", last.expected, **lifted)[1][0].cause != "beyond-limit"


def test_a_walk_starts_from_so_many_edges_that_the_model_did_not_refuse(asking: Asking) -> None:
    def one(request: Any) -> str:
        lines = "\n".join(parse_blocks(request.messages).values()).splitlines()
        row = next(json.loads(line) for line in lines if line.startswith("{"))
        return json.dumps({"id": row["id"], "reasoning": "It carried.", "score": 0.9})

    few = {"ppr_search.passages": 1, "ppr_search.read": 0}
    all_edges = {**few, "ppr_search.top_k_edges": 200, "ppr_search.filter": False}
    wide, _ = asking.ask("ppr", **all_edges)
    edges = [iri for iri in known(wide) if ":edge:" in iri]
    _, found = asking.ask(
        "ppr",
        *edges[:3],
        *edges[-2:],
        replies={"select_edges": one},
        **few,
        **{"ppr_search.top_k_edges": 3},
    )
    lost = {each.expected: each for each in found if each.cause == "beyond-limit"}
    assert lost
    for iri, each in lost.items():
        rank = edges.index(iri) + 1
        limit, cutoff = ("top-k-edges", 3) if rank > 3 else ("filter", None)
        assert beyond(each) == (limit, cutoff, rank)
        assert "its chunk: the chunk is the" in each.reason


# --- lightrag -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "value"),
    [("chunk_top_k", 2), ("related_chunk_number", 2), ("max_entity_tokens", 1)],
)
def test_the_limit_on_chunks_that_keywords_lead_to(asking: Asking, limit: str, value: int) -> None:
    wide = {
        "lightrag_search.low_keywords": ("Fram",),
        "lightrag_search.top_k": 1,
        "lightrag_search.related_chunk_number": 200,
        "lightrag_search.chunk_top_k": 200,
    }
    name = f"lightrag_search.{limit}"
    days = chunks_of(asking, "log.txt")[::16]
    _, found = asking.ask("lightrag-local", *days, **{**wide, name: value})
    lost = [each for each in found if each.limit == limit.replace("_", "-")]
    assert all(each.rank and each.cutoff is not None and each.rank > each.cutoff for each in lost)
    last = max(lost, key=lambda each: each.rank or 0)
    for least, cause in ((last.rank, {"not-used", "used"}), ((last.rank or 0) - 1, {last.cause})):
        again = asking.ask("lightrag-local", last.expected, **{**wide, name: least})[1][0]
        assert again.cause in cause


# --- drift ----------------------------------------------------------------------------------------


def test_follow_ups_that_were_not_asked_stand_in_line(asking: Asking) -> None:
    vessels = [f"Vessel{n:02}" for n in range(4)]

    def propose(request: Any) -> str:
        rows = [
            json.loads(line) for line in parse_blocks(request.messages)["EVIDENCE"].splitlines()
        ]
        row = {"statement": "It lay there.", "citations": [rows[0]["id"]]}
        asked = [f"What did Fram carry to {vessel}?" for vessel in vessels]
        return json.dumps({"response": [row], "score": 50, "follow_ups": asked})

    few = {
        **ONE_REPORT,
        "drift_search.top_k_relationships": 0,
        "drift_search.call_budget": 4,
    }
    trace, found = asking.ask("drift", *vessels, replies={"drift_action": propose}, **few)
    assert trace.actions is not None
    follow_ups = [action for action in trace.actions.children if action.kind == "follow-up"]
    waiting = [a for a in follow_ups if a.status == "pruned"]
    asked = len(follow_ups) - len(waiting)
    waiting.sort(key=lambda a: (-(a.promise or 0), a.number))
    lost = {each.expected: each for each in found if each.limit == "call-budget"}
    assert lost
    for place, action in enumerate(waiting, 1):
        vessel = action.query.removesuffix("?").rpartition(" ")[2]
        assert beyond(lost[vessel]) == ("call-budget", asked, asked + place)
    flat = {**few, "drift_search.depth": 0}
    _, deep = asking.ask("drift", "Vessel03", replies={"drift_action": propose}, **flat)
    assert beyond(deep[0]) == ("depth", 0, 1)


def test_drift_begins_with_so_many_reports_and_searches_around_so_many_entities(
    asking: Asking,
) -> None:
    few = {
        **ONE_REPORT,
        "drift_search.top_k_relationships": 0,
        "drift_search.depth": 0,
    }
    with asking.open(**few) as kg:
        session = kg.ask(QUESTION, "drift", history=[]).session
        found = [kg.why_not(session, report) for report in list(reports_of(kg))[::8]]
        entity = kg.why_not(session, "Vessel05")
    lost = [beyond(each) for each in found if each.cause != "used"]
    assert {(name, cutoff) for name, cutoff, _ in lost} == {("k", 1)}
    assert len({rank for *_, rank in lost}) == len(lost) >= 3
    assert beyond(entity)[:2] == ("top-k-entities", 1)


# --- global ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Asking:
    found = Asking(tmp_path_factory.mktemp("nested"))
    found.index({"circles.txt": circles()}, **{"reports.max_input_tokens": 1000})
    return found


@pytest.fixture(scope="module")
def levels(nested: Asking) -> tuple[list[str], list[str]]:
    """The reports at the top, and those below, a few."""
    with nested.open() as kg:
        known_levels = reports_of(kg)
    found = [[report for report, at in known_levels.items() if at == n] for n in (0, 1)]
    return found[0], found[1]


Levels = tuple[list[str], list[str]]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["global", "local"])
def test_reports_below_the_level_are_beyond_it(nested: Asking, levels: Levels, mode: str) -> None:
    top, lower = levels
    wide = {"local_search.top_k_entities": 100, f"{mode}_search.community_level": 0}
    _, found = nested.ask(mode, *lower, top[0], **wide)
    below = [each for each in found[:-1] if each.cause != "used"]  # through those above them
    assert {beyond(each) for each in below} == {("community-level", 0, 1)}
    assert found[-1].cause != "beyond-limit"


def test_reports_above_gave_way_to_those_on_their_parts(nested: Asking, levels: Levels) -> None:
    top, lower = levels
    _, found = nested.ask("global", *top, lower[0], **{"global_search.community_level": 1})
    assert {beyond(each) for each in found[:-1]} == {("community-level", 1, 0)}
    assert found[-1].cause != "beyond-limit"


@pytest.mark.slow
def test_the_descent_through_reports_ends_at_a_rating_a_level_or_the_calls(
    nested: Asking, levels: Levels
) -> None:
    top, lower = levels

    def rated(first: int, others: int) -> Any:
        seen = iter([first])
        return {
            "rate_report": lambda _: json.dumps({"reason": "So.", "rating": next(seen, others)})
        }

    dynamic = {"global_search.dynamic": True, "chat.concurrency": 1}
    _, found = nested.ask("global", *lower, replies=rated(5, 0), **dynamic)
    limits = {each.limit for each in found if each.cause == "beyond-limit"}
    assert limits <= {"dynamic-threshold"}
    level = {**dynamic, "global_search.dynamic_max_level": 0}
    _, found = nested.ask("global", *lower, replies=rated(5, 5), **level)
    below = [each for each in found if each.cause != "used"]
    assert {beyond(each) for each in below} == {("dynamic-max-level", 0, 1)}
    calls = {**level, "global_search.dynamic_max_calls": 1}
    _, found = nested.ask("global", *top, replies=rated(5, 5), **calls)
    lost = [each for each in found if each.cause == "beyond-limit"]
    assert sorted(beyond(each) for each in lost) == [
        ("dynamic-max-calls", 1, rank) for rank in range(2, len(top) + 1)
    ]


# --- filters --------------------------------------------------------------------------------------


def test_a_filter_that_leaves_a_thing_but_no_finding_on_it_is_named(tmp_path: Path) -> None:
    def report(request: Any) -> str:
        lines = "\n".join(parse_blocks(request.messages).values()).splitlines()
        ids = [row["id"] for x in lines if x.startswith("{") and "id" in (row := json.loads(x))]
        finding = {"summary": "Fram sailed.", "explanation": "Fram carried.", "citations": ids}
        told = {"title": "Fram", "summary": "About Fram.", "rating": 5, "findings": [finding]}
        return json.dumps({**told, "rating_explanation": "It matters."})

    both = Asking(tmp_path)
    texts = {"one.txt": "Fram carried Nansen.\n", "two.txt": "Fram carried Amundsen.\n"}
    both.index(texts, {"community_report": report})
    only = Filters(documents=("one.txt",), until="2100")
    _, (fram, other) = both.ask("global", "Fram", "two.txt", filters=only)
    assert beyond(fram) == ("filter-document", None, None)
    assert "with the report findings about it" in fram.reason
    assert "excluded by the filter document one.txt" in other.reason
