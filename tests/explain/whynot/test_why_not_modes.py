"""Why-not in every family of modes: each cause on a seeded case of which the truth is known."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tgraph
from tgraph.engine.components import Components
from tgraph.engine.graph import KnowledgeGraph
from tgraph.explain.trace.values import Trace, TraceItem
from tgraph.explain.whynot.causes import WhyNot
from tgraph.index.summary_tree import is_chunk, standing_tree, summary_text
from tgraph.retrieve.filters import Filters
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel
from tgraph.testing.script import parse_blocks

SHIPS = ("Fram", "Gauss", "Nimrod", "Belgica", "Discovery", "Quest", "Aurora")
BAKERS = ("Anna", "Berta", "Clara", "Dora", "Emma", "Frida")
TEXTS = {
    f"{name.lower()}.md": f"# {name}\n\n{name} was a ship of the south. The ship {name} lay in the"
    f" ice of the south for a winter. The captain of {name} kept a diary in the ice.\n"
    for name in SHIPS
} | {
    f"{name.lower()}.md": f"# {name}\n\n{name} was a baker of rye bread. {name} sold bread to Oslo."
    f" The oven of {name} was hot at four in the morning. A heavy lamp stood on the desk.\n"
    for name in BAKERS
}
QUESTION = "Which ships lay in the ice of the south?"
BY_CHUNK = ("basic", "naive", "contextual", "ppr", "raptor", "raptor-traversal")
LIMITS = {
    "basic": ("basic_search.k", "k"),
    "naive": ("naive_search.k", "k"),
    "contextual": ("contextual_search.k", "k"),
    "ppr": ("ppr_search.passages", "passages"),
    "raptor": ("raptor_search.k", "k"),
}
ALL_ALIKE = {
    "naive_search.least_score": -1.0,
    "raptor_search.max_context_tokens": 20_000,
    "raptor_search.k": 100,
    "raptor_search.top_k": 100,
    "basic_search.k": 100,
    "ppr_search.passages": 100,
}
"""Limits that nothing is beyond."""


def citing(*kinds: str, count: int = 1) -> Callable[[Any], str]:
    """A writer that cites the first rows of such a kind, and nothing else."""

    def reply(request: Any) -> str:
        rows = [
            json.loads(line) for line in parse_blocks(request.messages)["EVIDENCE"].splitlines()
        ]
        ids = [row["id"] for row in rows if not kinds or any(kind in row for kind in kinds)]
        return json.dumps({"sentence": "It was so.", "citations": ids[:count]})

    return reply


NO_MODEL: dict[str, object] = {"chat.provider": "embedded"}
"""Without a model chunks that are near do not fill a prompt, so that limits cut things off."""


class Asking:
    """Asks one graph, with whatever replies and settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, replies: Any = None, **settings: object) -> KnowledgeGraph:
        values = {"extract.gleanings": 0, **settings}
        parts = Components(
            load_settings(None, values),
            self.folder / "cache",
            chat=None
            if values.get("chat.provider") == "embedded"
            else ScriptedModel(replies or {}),
            embedder=HashingEmbedder(),
        )
        return tgraph.open(self.folder / "graph", create=True, parts=parts, settings=values)

    def ask(
        self, mode: str, *expected: str, replies: Any = None, **settings: object
    ) -> tuple[Trace, list[WhyNot]]:
        with self.open(replies, **settings) as kg:
            answer = kg.ask(QUESTION, mode, history=[])
            found = [kg.why_not(answer.session, each) for each in expected]
            return kg.trace(answer.session), found

    def why(self, mode: str, expected: str, replies: Any = None, **settings: object) -> WhyNot:
        return self.ask(mode, expected, replies=replies, **settings)[1][0]

    def why_each(self, session: str, expected: list[str]) -> Iterator[WhyNot]:
        with self.open() as kg:
            for each in expected:
                yield kg.why_not(session, each)


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Asking:
    folder = tmp_path_factory.mktemp("why")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    found = Asking(folder)
    with found.open(
        **{
            "raptor.enabled": True,
            "raptor.max_cluster_tokens": 500,
            "contextual_search.enabled": True,
        }
    ) as kg:
        assert not kg.index([folder / name for name in TEXTS]).failed
    return found


def chunks(items: tuple[TraceItem, ...]) -> list[TraceItem]:
    return [item for item in items if item.kind == "chunk"]


# --- what retrieves chunks ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("mode", BY_CHUNK)
def test_used_and_not_used(asking: Asking, mode: str) -> None:
    replies = {"synthesise_answer": citing("chunk")}
    trace, _ = asking.ask(mode, replies=replies, **ALL_ALIKE)
    cited = {c.chunk for s in trace.sentences for c in s.citations}
    places = [item.item for item in chunks(trace.selected)]
    causes = [found.cause for found in asking.why_each(trace.explain_id, places)]
    assert causes.count("used") == len(cited) == 1
    assert set(causes) == {"used", "not-used"}
    assert causes[places.index(cited.pop())] == "used"


@pytest.mark.slow
@pytest.mark.parametrize("mode", BY_CHUNK)
def test_a_fact_is_used_where_the_sentence_that_states_it_is_cited(
    asking: Asking, mode: str
) -> None:
    trace, _ = asking.ask(mode, **ALL_ALIKE)
    quotes = [c.quote for s in trace.sentences for c in s.citations if c.chunk]
    for name in BAKERS:
        told = f"{name} sold bread to Oslo."
        found = next(asking.why_each(trace.explain_id, [f"{name} — sold bread — Oslo"]))
        assert found.kind == "fact"
        assert found.cause == ("used" if any(told in quote for quote in quotes) else "not-used")


@pytest.mark.slow
@pytest.mark.parametrize("mode", [m for m in BY_CHUNK if m != "raptor-traversal"])
def test_over_the_budget_is_not_selected_with_that_reason(asking: Asking, mode: str) -> None:
    section = f"{mode.partition('-')[0]}_search"
    tight = {**ALL_ALIKE, f"{section}.max_context_tokens": 600, f"{section}.k": 20}
    if mode == "ppr":
        tight = {"ppr_search.max_context_tokens": 500, "ppr_search.passages": 20}
    trace, _ = asking.ask(mode, **tight)
    left = chunks(trace.rejected)
    assert left
    for found, item in zip(
        asking.why_each(trace.explain_id, [i.item for i in left]), left, strict=True
    ):
        assert found.cause == "not-selected"
        assert "budget" in found.reason
        taken = sum(i.tokens for i in trace.selected if i.kind == item.kind or mode[:6] == "raptor")
        assert f"the candidate costs {item.tokens:,} tokens" in found.reason
        assert f"selected items cost {taken:,}" in found.reason
        assert found.rank == item.rank


@pytest.mark.slow
@pytest.mark.parametrize("mode", LIMITS)
def test_beyond_the_limit_with_the_rank_that_it_has_without(asking: Asking, mode: str) -> None:
    setting, name = LIMITS[mode]
    whole, _ = asking.ask(mode, **{**ALL_ALIKE, setting: 100})
    ranks = {i.item: i.rank for i in (*whole.selected, *whole.rejected) if i.kind == "chunk"}
    trace, _ = asking.ask(mode, **{**ALL_ALIKE, setting: 2})
    taken = {i.item for i in (*trace.selected, *trace.rejected)}
    cut = sorted(ranks.keys() - taken)
    assert len(cut) >= len(TEXTS) - 2
    for found, chunk in zip(asking.why_each(trace.explain_id, cut), cut, strict=True):
        assert (found.cause, found.limit, found.cutoff) == ("beyond-limit", name, 2)
        first = min(ranks.values()) if mode == "ppr" else 1
        assert found.rank == ranks[chunk] - first + 1, "edges stand before the chunks"


def test_what_is_too_unlike_is_beyond_that_limit(asking: Asking) -> None:
    found = asking.why("naive", "anna.md", **{"naive_search.least_score": 0.5})
    assert (found.cause, found.limit, found.cutoff) == ("beyond-limit", "least-score", 0.5)


@pytest.mark.parametrize("mode", BY_CHUNK)
def test_what_nothing_says_and_what_no_edge_states(asking: Asking, mode: str) -> None:
    _, (absent, lamp) = asking.ask(mode, "penicillin", "a heavy lamp", **ALL_ALIKE)
    assert absent.cause == "not-in-corpus"
    assert lamp.cause in ("used", "not-used"), "chunks are retrieved as they stand"


# --- the tree of summaries ------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["raptor", "raptor-traversal"])
def test_a_chunk_is_used_through_the_summary_that_is_cited(asking: Asking, mode: str) -> None:
    replies = {"synthesise_answer": citing("summary")}
    trace, _ = asking.ask(mode, replies=replies, **ALL_ALIKE)
    (sentence,) = trace.sentences
    through = [c for c in sentence.citations if c.via]
    assert through
    for place in through:
        for expected in (place.chunk, place.path):
            found = next(asking.why_each(trace.explain_id, [expected]))
            assert found.cause == "used"
            assert found.sentences == (1,)


def test_what_a_selected_summary_speaks_of_was_selected(asking: Asking) -> None:
    replies = {"synthesise_answer": citing("chunk")}
    wide, _ = asking.ask("raptor", **ALL_ALIKE)
    first = min(item.rank for item in wide.selected if item.kind == "summary")
    few = {**ALL_ALIKE, "raptor_search.k": first}
    trace, _ = asking.ask("raptor", replies=replies, **few)
    summaries = [item for item in trace.selected if item.kind == "summary"]
    assert summaries
    with asking.open() as kg:
        store = kg.opened.read()
        told = "\n".join(summary_text(store, item.item) for item in summaries)
    cited = {c.path for s in trace.sentences for c in s.citations}
    for name in SHIPS:
        if name in told and not any(path.endswith(f"{name.lower()}.md") for path in cited):
            found = next(asking.why_each(trace.explain_id, [name]))
            assert found.cause == "not-used"
            assert any(item.kind in ("summary", "chunk") for item in found.items)


@pytest.mark.slow
def test_a_traversal_is_cut_until_it_follows_enough(asking: Asking) -> None:
    """With each limit below the one at which the chunk is retrieved, that limit is the cause."""
    causes = []
    for top_k in range(1, len(TEXTS)):
        settings = {**ALL_ALIKE, "raptor_search.top_k": top_k}
        trace, (found,) = asking.ask("raptor-traversal", "anna.md", **settings)
        if any(item.label.startswith("Anna") for item in chunks(trace.selected)):
            causes.append(found.cause)
            break
        assert (found.cause, found.limit, found.cutoff) == ("beyond-limit", "top-k", top_k)
        assert found.rank is not None
        assert found.rank > top_k
        causes.append(found.cause)
    assert causes[0] == "beyond-limit"
    assert causes[-1] in ("used", "not-used")


def test_every_chunk_that_a_traversal_did_not_reach_was_cut_in_some_layer(asking: Asking) -> None:
    trace, _ = asking.ask("raptor-traversal", **{**ALL_ALIKE, "raptor_search.top_k": 1})
    with asking.open() as kg:
        tree = standing_tree(kg.opened.read())
    every = {m for node in tree.values() for m in node.members if is_chunk(m)}
    reached = {item.item for item in (*trace.selected, *trace.rejected)}
    shown = {place.chunk for item in trace.selected for place in item.evidence}
    for chunk in sorted(every - reached - shown):
        found = next(asking.why_each(trace.explain_id, [chunk]))
        assert (found.cause, found.limit) == ("beyond-limit", "top-k"), found.reason
        assert found.rank is not None
        assert found.rank > 1


# --- the others -----------------------------------------------------------------------------------


def test_keywords_lead_so_far(asking: Asking) -> None:
    words = {
        "lightrag_search.low_keywords": ("Fram",),
        "lightrag_search.least_score": -1.0,
        "lightrag_search.chunk_top_k": 1,  # chunks that fill the prompt speak of everything
    }
    wide = {**words, "lightrag_search.top_k": 100}
    trace, _ = asking.ask("lightrag-local", **wide)
    order = [match.entity for match in trace.matches]
    far = order[-1]
    found = asking.why("lightrag-local", far, **{**words, "lightrag_search.top_k": 2})
    if found.cause != "beyond-limit":  # an edge of the nearest leads to it
        found = asking.why("lightrag-local", order[-2], **{**words, "lightrag_search.top_k": 2})
        far = order[-2]
    assert (found.cause, found.limit, found.cutoff) == ("beyond-limit", "top-k", 2)
    assert found.rank == order.index(far) + 1
    unlike = asking.why("lightrag-local", far, **{**words, "lightrag_search.least_score": 0.9})
    assert (unlike.cause, unlike.limit) == ("beyond-limit", "least-score")


@pytest.mark.parametrize("mode", ["lightrag-local", "lightrag-global", "lightrag-hybrid"])
def test_keywords_used_and_not_used(asking: Asking, mode: str) -> None:
    replies = {"synthesise_answer": citing("edge")}
    trace, _ = asking.ask(mode, replies=replies)
    edges = [item for item in trace.selected if item.kind == "edge"]
    causes = [f.cause for f in asking.why_each(trace.explain_id, [i.item for i in edges])]
    cited = {c for s in trace.sentences for c in s.edge_selections}
    assert causes == ["used" if item.iri in cited else "not-used" for item in edges]
    assert asking.why(mode, "penicillin").cause == "not-in-corpus"


@pytest.mark.slow
def test_reports_used_not_selected_and_rated_too_low(asking: Asking) -> None:
    trace, _ = asking.ask("global")
    points = [point for batch in trace.batches for point in batch.points]
    assert points
    assert asking.why("global", "penicillin").cause == "not-in-corpus"
    assert asking.why("global", "a heavy lamp").cause == "not-extracted"
    low = asking.why("global", "Oslo", **{"global_search.min_rating": 10.0})
    assert (low.cause, low.limit, low.cutoff) == ("beyond-limit", "min-rating", 10.0)
    names = [*SHIPS, *BAKERS, "Oslo"]
    causes = {found.cause for found in asking.why_each(trace.explain_id, names)}
    assert {"used"} <= causes <= {"used", "not-used", "not-selected", "not-linked"}
    mute = {"map_points": json.dumps({"points": []})}
    assert asking.why("global", "Oslo", replies=mute).cause == "not-selected"


def test_the_tree_of_questions(asking: Asking) -> None:
    narrow = {"drift_search.k": 1, "drift_search.top_k_entities": 1, "drift_search.depth": 0}
    narrow |= {"drift_search.top_k_relationships": 0}
    trace, (absent, lamp) = asking.ask("drift", "penicillin", "a heavy lamp", **narrow)
    assert (absent.cause, lamp.cause) == ("not-in-corpus", "not-extracted")
    used = {c.path for s in trace.sentences for c in s.citations}
    assert used
    for path in used:
        assert next(asking.why_each(trace.explain_id, [path])).cause == "used"
    every = asking.why_each(trace.explain_id, [*SHIPS, *BAKERS])
    found = [each for each in every if each.cause == "beyond-limit"]
    assert found
    assert all(f.limit == "top-k-entities" and f.rank and f.rank > 1 for f in found)


def test_a_follow_up_that_was_not_asked_is_the_limit(asking: Asking) -> None:
    def propose(request: Any) -> str:
        rows = [
            json.loads(line) for line in parse_blocks(request.messages)["EVIDENCE"].splitlines()
        ]
        row = {"statement": "It lay there.", "citations": [rows[0]["id"]]}
        asked = ["What is known of Quest?"]
        return json.dumps({"response": [row], "score": 50, "follow_ups": asked})

    narrow = {"drift_search.k": 1, "drift_search.top_k_entities": 1, "drift_search.depth": 1}
    narrow |= {"drift_search.top_k_relationships": 0, "drift_search.call_budget": 4}
    trace, (found,) = asking.ask("drift", "Quest", replies={"drift_action": propose}, **narrow)
    assert trace.actions is not None
    (follow_up,) = [a for a in trace.actions.children if a.kind == "follow-up"]
    assert follow_up.status == "pruned"
    assert (found.cause, found.limit) == ("beyond-limit", "call-budget")
    assert follow_up.reason in found.reason


@pytest.mark.slow
def test_ranks_are_those_of_the_knowledge_that_was_asked(asking: Asking, tmp_path: Path) -> None:
    later = Asking(Path(shutil.copytree(asking.folder, tmp_path / "copy")))
    few = {**ALL_ALIKE, "raptor_search.k": 1, "raptor_search.top_k": 1, "contextual_search.k": 1}
    modes = ("raptor", "raptor-traversal", "contextual", "ppr")
    with later.open(**{**few, "ppr_search.passages": 1}) as kg:
        asked = [kg.ask(QUESTION, mode, history=[]) for mode in modes]
        before = [kg.why_not(answer.session, "anna.md") for answer in asked]
        new = later.folder / "new.md"
        new.write_text("The Scotia was a ship of the north.\n")
        kg.index([new])
        kg.retract("anna.md", reason="It was forged.")
        found = [kg.why_not(answer.session, "anna.md") for answer in asked]
    assert [f.limit for f in found] == ["k", "top-k", "k", "passages"]
    assert all(f.rank and f.rank > 1 for f in found)
    assert [(f.cause, f.rank, f.reason) for f in found] == [
        (f.cause, f.rank, f.reason) for f in before
    ]
    assert all("changed since" in note for f in found for note in f.notes)


@pytest.mark.slow
def test_edges_that_lead_out_come_with_their_rank(tmp_path: Path) -> None:
    """One entity with more chunks than local search looks at, so that edges alone carry some."""
    for number in range(45):
        (tmp_path / f"{number}.txt").write_text(f"Fram carried Sailor{number:02}.\n")
    many = Asking(tmp_path)
    with many.open() as kg:
        kg.index(sorted(tmp_path.glob("*.txt")))
    one = {**NO_MODEL, "local_search.top_k_entities": 1, "local_search.include": ("Fram",)}
    wide, _ = many.ask("local", **one, **{"local_search.top_k_relationships": 100})
    every = sorted((*wide.selected, *wide.rejected), key=lambda item: item.rank)
    edges = [item.item for item in every if item.kind == "edge"]
    trace, _ = many.ask("local", **one, **{"local_search.top_k_relationships": 3})
    inside = len(trace.matches)
    found = [f for f in many.why_each(trace.explain_id, edges) if f.limit == "top-k-relationships"]
    assert found
    for each in found:
        assert (each.cause, each.cutoff) == ("beyond-limit", 3 * inside)
        among = len(edges) - int(each.reason.partition(" edges that")[0].rpartition(" ")[2])
        assert each.rank == edges.index(each.expected) + 1 - among


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["graph", "local", *BY_CHUNK, "lightrag-local"])
def test_the_filter_that_kept_it_out_is_named(asking: Asking, mode: str) -> None:
    filters = Filters(documents=("fram.md", "gauss.md"), until="2100")
    with asking.open() as kg:
        session = kg.ask(QUESTION, mode, history=[], filters=filters).session
        for expected in ("anna.md", "Berta sold bread to Oslo."):
            found = kg.why_not(session, expected)
            assert (found.cause, found.limit) == ("beyond-limit", "filter-document"), expected
            assert "excluded by the filter document fram.md, gauss.md" in found.reason
        late = kg.ask(QUESTION, mode, history=[], filters=Filters(until="1900")).session
        found = kg.why_not(late, "anna.md")
        assert (found.limit, found.cutoff) == ("filter-until", None)
        assert "excluded by the filter until 1900" in found.reason
        assert kg.why_not(session, "penicillin").cause == "not-in-corpus"


def test_nothing_is_linked_where_nothing_is_retrieved(asking: Asking) -> None:
    assert asking.why("bypass", "Fram").cause == "not-linked"


@pytest.mark.slow
def test_local_search_cuts_entities_by_their_likeness(asking: Asking) -> None:
    few = {**NO_MODEL, "local_search.top_k_entities": 1, "local_search.top_k_relationships": 0}
    wide, _ = asking.ask("local", **NO_MODEL, **{"local_search.top_k_entities": 100})
    order = [match.entity for match in wide.matches]
    trace, _ = asking.ask("local", **few)
    found = [f for f in asking.why_each(trace.explain_id, order) if f.cause == "beyond-limit"]
    assert found
    for each in found:
        assert (each.limit, each.cutoff) == ("top-k-entities", 1)
        assert each.rank == order.index(each.expected) + 1
