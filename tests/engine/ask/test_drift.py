"""DRIFT search through the engine: the tree of actions, its limits, its faults and its record."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal

import tgraph
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.ask.drift import BEHIND_OTHERS
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import EndpointError, ModelError
from tgraph.explain.audit.shacl import check_shapes
from tgraph.explain.trace.values import Trace, TraceAction
from tgraph.model import Answer
from tgraph.testing import Fault, ScriptedServer
from tgraph.testing.faults import FaultKind
from tgraph.testing.script import parse_blocks

TEXTS = {
    "curie.md": "# Marie Curie\n\nMarie Curie discovered Polonium in Paris. Pierre Curie worked"
    " with Marie Curie at the Sorbonne. Marie Curie named Polonium after Poland.\n",
    "becquerel.md": "# Henri Becquerel\n\nHenri Becquerel shared the Nobel Prize with Marie Curie."
    " Henri Becquerel studied Uranium at the Museum of Natural History.\n",
    "nansen.md": "# The Fram\n\nFridtjof Nansen sailed with the Fram. Colin Archer built the Fram"
    " in Larvik. Otto Sverdrup commanded the Fram after Fridtjof Nansen.\n",
}
QUESTION = "What did Marie Curie discover, and with whom did she work?"
CATALOGUE = v.collection_iri("explainability")


@contextmanager
def opened(root: Path, server: ScriptedServer | None, **settings: Any) -> Iterator[KnowledgeGraph]:
    values: dict[str, Any] = {"embedding.provider": "hashing", "extract.gleanings": 0}
    if server is not None:
        values |= {"chat.base_url": server.base_url, "chat.api_key": "k", "chat.retries": 0}
    values |= {name.replace("__", "."): value for name, value in settings.items()}
    with tgraph.open(root / "graph", create=True, settings=values) as kg:
        yield kg


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The place of a graph with reports, made by the scripted model."""
    root = tmp_path_factory.mktemp("drift")
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    with ScriptedServer() as server, opened(root, server) as kg:
        kg.index([root / name for name in TEXTS])
    return root


Asked = Callable[..., tuple[Answer | Exception, Trace]]


@pytest.fixture
def asked(made: Path) -> Asked:
    """Asks that graph; the answer or the error, and the trace."""

    def ask(server: ScriptedServer, *, check: bool = False, **settings: Any):
        outcome: Answer | Exception
        with opened(made, server, **settings) as kg:
            try:
                outcome = kg.ask(QUESTION, mode="drift", history=())
            except tgraph.TgraphError as error:
                outcome = error
            trace = kg.trace()
            if check:  # it takes seconds
                violations = check_shapes(kg.opened.read(), CATALOGUE, trace.explain_id)
                assert not violations, violations
        return outcome, trace

    return ask


def actions(trace: Trace) -> list[TraceAction]:
    def below(action: TraceAction) -> Iterator[TraceAction]:
        yield action
        for child in action.children:
            yield from below(child)

    assert trace.actions is not None
    return list(below(trace.actions))


def statement(request: Any, text: str = "It is so.", *, place: int = 0, **values: Any) -> str:
    """A reply that cites one thing that was shown, the first if it is not said which."""
    data = parse_blocks(
        request.messages if hasattr(request, "messages") else request.body["messages"]
    )
    cited = json.loads((data.get("EVIDENCE") or data["REPORTS"]).splitlines()[place])
    rows = [{"statement": text, "citations": [cited["id"]]}]
    return json.dumps({"response": rows, "score": 80, "follow_ups": [], **values})


# --- the tree -----------------------------------------------------------------------------------


def test_a_question_takes_under_twenty_calls_embeddings_included(made, asked):
    with ScriptedServer() as server:
        with opened(made, server, embedding__provider="openai") as kg:
            kg.ask("Who?", mode="drift", history=())  # the vectors of this embedder are made
            before = len(server.requests)
            answer = kg.ask(QUESTION, mode="drift", history=())
            sent = server.requests[before:]
        assert answer.sentences
        assert len(sent) == answer.usage.calls < 20
    steps = Counter(request.step for request in sent)
    assert steps["drift_hyde"] == 1
    assert steps["drift_primer"] <= 3
    assert steps["drift_action"] >= 2
    assert sum(steps[s] for s in steps if s.startswith("drift")) + 1 <= 13


@pytest.mark.slow
def test_every_action_is_on_record_with_what_it_found_and_said(asked):
    with ScriptedServer() as server:
        answer, trace = asked(server, check=True)
    assert isinstance(answer, Answer)
    root, *rest = actions(trace)
    assert (root.kind, root.query, root.status) == ("question", QUESTION, "answered")
    assert {"fold", "follow-up"} <= {action.kind for action in rest}
    for action in [root, *rest]:
        if action.status == "pruned":
            assert action.reason
            assert action.score is None
            assert not action.points
            continue
        assert action.retrieved >= action.shown > 0
        assert action.score is not None
        assert bool(action.points) == (action.status == "answered")
        assert (action.promise is not None) == (action.kind == "follow-up")
    selected = {item.item for item in trace.selected}
    points = [point for action in [root, *rest] for point in action.points]
    assert selected == {point.iri for point in points if not point.rejected}
    assert all(item.reasoning for item in trace.rejected)


def test_every_citation_leads_through_a_point_to_exact_characters(asked):
    with ScriptedServer() as server:
        answer, trace = asked(server)
    assert isinstance(answer, Answer)
    made_by = {p.iri for action in actions(trace) for p in action.points}
    for sentence in answer.sentences:
        assert sentence.citations
        for citation in sentence.citations:
            text = TEXTS[Path(citation.path).name]
            assert text[citation.start : citation.end] == citation.quote
            assert citation.item in made_by
            through_report = bool(citation.via) and ":report:" in citation.via[0]
            assert citation.kind == ("report" if through_report else "summary")


def replies(follow_ups: dict[str, list[str]], scores: dict[str, int] | None = None):
    """Scripted answers on the way: by the question, what to ask next and how good it is."""

    def reply(request: Any) -> str:
        query = parse_blocks(request.body["messages"])["QUESTION"]
        return statement(
            request,
            f"Said of {query}",
            score=(scores or {}).get(query, 80),
            follow_ups=follow_ups.get(query, []),
        )

    return {"drift_action": reply, "drift_primer": lambda r: statement(r, "Said by reports.")}


def test_follow_ups_are_asked_by_promise_within_the_limits(asked):
    proposed = {
        QUESTION: [
            "Where did Marie Curie work with Pierre Curie?",
            "where did marie curie work with Pierre Curie",
            "Zebras?",
            "What did Marie Curie discover in Paris?",
            "x" * 500,
        ],
        "What did Marie Curie discover in Paris?": [QUESTION, "What did she discover later?"],
        "What did she discover later?": ["Did Marie Curie discover anything else?"],
    }
    with ScriptedServer(replies(proposed)) as server:
        answer, trace = asked(
            server, drift_search__breadth=1, drift_search__depth=2, drift_search__call_budget=20
        )
    assert isinstance(answer, Answer)
    by_query = {a.query: a for a in actions(trace) if a.kind == "follow-up"}
    assert len(by_query) == 5
    asked_ = [a for a in by_query.values() if a.status == "answered"]
    assert len(asked_) == 2
    first = max(asked_, key=lambda a: -a.depth)
    assert first.depth == 1
    assert by_query["Zebras?"].promise == 0
    assert by_query["Zebras?"].reason == "over the breadth limit"
    assert trace.dropped["follow-up that is empty or too long"] == 1
    assert trace.dropped["follow-up that was asked before"] >= 1
    too_deep = [a for a in by_query.values() if a.reason == "beyond the depth limit"]
    assert all(a.depth == 3 for a in too_deep)


@pytest.mark.slow
def test_what_is_said_and_proposed_again_leaves_a_valid_record(made, asked):
    """A point that repeats another is rejected with what it alone cites; a follow-up that a later
    answer proposes again comes from the first alone, for it may have been asked by then."""
    again = ["Who built the ship?", "Where was the ship built?"]

    def say(place: int, request: Any) -> str:
        return statement(request, "Archer built the Fram.", place=place, follow_ups=again)

    replies = {"drift_primer": partial(say, 0), "drift_action": partial(say, -1)}
    with ScriptedServer(replies) as server:
        _, trace = asked(server, check=True)
        with opened(made, server) as kg:
            broken = kg.audit("prov-ordering").rows
            reason = v.tg("rejectionReason"), Literal(BEHIND_OTHERS)
            behind = [q.subject for q in kg.opened.read().match(None, *reason)]
    assert any(trace.explain_id.rpartition(":")[2] in str(candidate) for candidate in behind)
    assert not [row for row in broken if trace.explain_id.rpartition(":")[2] in str(row)]
    tree = actions(trace)
    assert max(action.proposed_again for action in tree) > 0
    points = [point for action in tree for point in action.points]
    assert {point.rejected for point in points} > {""}


def test_the_call_budget_holds_and_names_what_it_cut(asked):
    proposed = {QUESTION: [f"What of Marie Curie and {name}?" for name in ("Ada", "Bob", "Cy")]}
    with ScriptedServer(replies(proposed)) as server:
        _, trace = asked(server, drift_search__call_budget=6)
        assert len(server.requests) == 6
    cut = [action for action in actions(trace) if action.status == "pruned"]
    assert cut
    assert {action.reason for action in cut} == {"over the call budget"}
    with ScriptedServer(replies(proposed)) as server:
        asked(server, drift_search__call_budget=3)
        assert server.count("drift_primer") == 0
        assert server.count("drift_action") == 1


@pytest.mark.slow
def test_the_same_question_makes_the_same_tree_whatever_comes_first(made, asked):
    def told(trace: Trace) -> str:
        text = json.dumps(trace.as_dict(), default=str)
        kept = trace.as_dict() | {"calls": None, "steps": None, "started": "", "ended": ""}
        assert text
        return str(kept).replace(trace.explain_id.rpartition(":")[2], "UUID")

    with ScriptedServer() as server:
        trees = [told(asked(server, chat__concurrency=n)[1]) for n in (1, 4, 4)]
        sent = [json.dumps(r.body, sort_keys=True) for r in server.requests]
    assert trees[0].replace("'concurrency'", "") == trees[1] == trees[2]
    third = len(sent) // 3
    assert sorted(sent[:third]) == sorted(sent[third : 2 * third]) == sorted(sent[2 * third :])


# --- faults -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "step", "reason"),
    [
        ("prose", "drift_action", "answer on the way whose reply can't be used"),
        ("empty", "drift_action", "answer on the way whose reply can't be used"),
        ("empty", "drift_primer", "answer on the way whose reply can't be used"),
        ("prose", "drift_primer", "answer on the way whose reply can't be used"),
        ("unknown_ids", "drift_action", "citation of an id that was not shown"),
        ("unknown_ids", "drift_primer", "statement without a citation that holds"),
        ("empty", "drift_hyde", "hypothetical answer that can't be used"),
    ],
)
def test_a_bad_reply_costs_one_action_and_is_counted(asked, fault: FaultKind, step, reason):
    with ScriptedServer(faults=[Fault(fault, step, nth=1)]) as server:
        answer, trace = asked(server, check=(fault, step) == ("prose", "drift_action"))
    assert isinstance(answer, Answer)
    assert trace.status == "completed"
    assert trace.dropped[reason] >= 1
    assert answer.dropped == trace.dropped
    assert answer.sentences
    assert all(c.quote for s in answer.sentences for c in s.citations)
    spoilt = [a for a in actions(trace) if a.status in ("failed", "unanswered")]
    assert len(spoilt) == (step != "drift_hyde")
    assert all(a.reason for a in spoilt if a.status == "failed")


@pytest.mark.parametrize("fault", ["truncated_json", "length", "over_long"])
def test_what_can_be_read_of_a_reply_is_used(asked, fault: FaultKind):
    with ScriptedServer(faults=[Fault(fault, "drift_action", nth=1)]) as server:
        answer, trace = asked(server)
    assert isinstance(answer, Answer)
    assert trace.status == "completed"
    root, *_ = actions(trace)
    assert root.status == "answered"


def test_more_than_an_answer_may_say_is_cut_and_counted(asked):
    def long(request: Any) -> str:
        data = parse_blocks(request.body["messages"])
        first = json.loads(data["EVIDENCE"].splitlines()[0])["id"]
        rows = [
            {"statement": f"Point {n}. " + "so " * n * 40, "citations": [first]} for n in range(30)
        ]
        return json.dumps({"response": rows, "score": "nonsense", "follow_ups": "One more?"})

    with ScriptedServer({"drift_action": long}) as server:
        answer, trace = asked(server, drift_search__depth=0)
    assert isinstance(answer, Answer)
    root = actions(trace)[0]
    assert len(root.points) == 12
    assert root.score == 0.5
    assert all(len(point.text) <= 1_300 for point in root.points)
    assert trace.dropped["statement over the limit of one answer"] == 18
    assert trace.dropped["statement cut because it is too long"] >= 1


def test_nothing_but_bad_replies_is_a_failure_not_an_answer(asked):
    faults = [Fault("prose", "drift_primer"), Fault("prose", "drift_action")]
    with ScriptedServer(faults=faults) as server:
        outcome, trace = asked(server)
    assert isinstance(outcome, ModelError)
    assert trace.status == "failed"
    assert {a.status for a in actions(trace)} == {"failed"}


@pytest.mark.slow
@pytest.mark.parametrize(("step", "nth"), [("drift_primer", 1), ("drift_action", 3)])
def test_a_server_that_fails_ends_the_question_with_the_tree_on_record(asked, step, nth):
    with ScriptedServer(faults=[Fault("unauthorised", step, nth=nth)]) as server:
        outcome, trace = asked(server, check=True, chat__concurrency=1)
    assert isinstance(outcome, EndpointError)
    assert trace.status == "failed"
    tree = actions(trace)
    assert any(a.reason == "the session ended before it was answered" for a in tree)
    assert any(a.status == "answered" for a in tree) == (nth == 3)


def test_a_point_that_no_prompt_has_room_for_is_counted(asked):
    with ScriptedServer() as server:
        answer, _ = asked(server, drift_search__reduce_context_tokens=700)
    assert isinstance(answer, Answer)
    assert answer.dropped["selected item over the token budget"] >= 1


# --- without a model ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("embedded")
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    with opened(root, None) as kg:
        kg.index([root / name for name in TEXTS])
    return root


@pytest.mark.slow
def test_without_a_model_it_quotes_follows_neighbours_and_refuses(embedded):
    with opened(embedded, None) as kg:
        answer = kg.ask("Where did Marie Curie discover Polonium?", mode="drift")
        trace = kg.trace()
        other = kg.ask("Which football club won the cup in 1998?", mode="drift", history=())
        assert not check_shapes(kg.opened.read(), CATALOGUE)
    assert "Marie Curie discovered Polonium in Paris." in answer.text
    for sentence in answer.sentences:
        [*cited] = {c.quote for c in sentence.citations}
        assert [" ".join(quote.split()) for quote in cited] == [sentence.text]
    follow_ups = [a for a in actions(trace) if a.kind == "follow-up"]
    assert all(a.query.startswith("What about ") for a in follow_ups)
    assert any(a.status in ("answered", "unanswered") for a in follow_ups)
    assert {agent for s in trace.steps for agent in s.agents if "drift" in agent} == {
        "embedded-drift",
        "embedded-drift-synthesis",
    }
    assert other.no_evidence


@pytest.mark.slow
def test_the_command_draws_the_tree(embedded, monkeypatch):
    from click.testing import CliRunner

    monkeypatch.setenv("TGRAPH_EMBEDDING__PROVIDER", "hashing")
    run = CliRunner()
    base = ["--root", str(embedded / "graph")]
    asked = run.invoke(cli, ["ask", "-m", "drift", "-x", "Who built the Fram?", *base])
    assert asked.exit_code == 0, asked.output
    assert "Actions: " in asked.stderr
    drawn = run.invoke(cli, ["trace", "last", "--all", *base])
    assert "The question itself" in drawn.stdout
    assert "promise" in drawn.stdout
    assert "Reports, fold 1" in drawn.stdout
    tree = json.loads(run.invoke(cli, ["trace", "last", "--format", "json", *base]).stdout)
    assert tree["actions"]["children"]
    out = run.invoke(cli, ["ask", "-m", "drift", "--json", "Who built the Fram?", *base])
    said = json.loads(out.stdout)
    assert said["mode"] == "drift"
    assert {item["kind"] for item in said["selection"]} == {"report"}
