"""Influence: what was planted is found, noise is not taken for it, and all of it is on record."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import tgraph
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.ask.question_run import answer_of
from tgraph.engine.components import Components
from tgraph.engine.schemas import build_schemas
from tgraph.errors import UsageError
from tgraph.explain.audit.shacl import check_shapes
from tgraph.extensions.lab import estimate_influence, measure_influence
from tgraph.extensions.lab.influence.ablations import calls_of, plan_ablations
from tgraph.extensions.lab.influence.attribution import ClaimOverlap, by_chance
from tgraph.extensions.lab.influence.values import Influence
from tgraph.model import Agent
from tgraph.record.assessments import InfluenceRecord
from tgraph.retrieve.modes.registry import MODES
from tgraph.settings import load_settings
from tgraph.testing import (
    HashingEmbedder,
    ScriptedModel,
    ScriptedServer,
    ServerRequest,
    ticking_clock,
)
from tgraph.testing.script import parse_blocks

CARGOES = 30
QUESTION = "What did Fram carry?"
PARAMETRIC = "Ships sail on water."
CATALOGUE = v.collection_iri("explainability")


def cargo(number: int) -> str:
    return f"Cargo{number:02d}"


def said_of(number: int) -> str:
    return f"Of all, {cargo(number)} was aboard."


# --- a model with a known dependence --------------------------------------------------------------

Rows = Sequence[tuple[str, Callable[[set[str]], bool], str]]
"""Sentences: the text, whether it is said when these cargoes are shown, the cargo that it cites."""


class Writer:
    """Writes rows over HTTP; a ``loss`` makes it forget each sentence with that probability."""

    def __init__(self, rows: Rows, *, loss: float = 0.0) -> None:
        self.rows = rows
        self.loss = loss
        self._random = Random(7)

    def __call__(self, request: ServerRequest) -> str:
        listed = parse_blocks(request.body["messages"])["EVIDENCE"].splitlines()
        ids = {cargo_in(row): json.loads(row)["id"] for row in listed}
        said = [
            {"sentence": text, "citations": [ids[cites]] if cites in ids else []}
            for text, condition, cites in self.rows
            if condition(set(ids)) and self._random.random() >= self.loss
        ]
        lines = [json.dumps(row) for row in said]
        return "\n".join(lines) or '{"no_evidence": true}'


def cargo_in(row: str) -> str:
    return next(cargo(n) for n in range(CARGOES) if cargo(n) in row)


def fact(number: int, *, cites: int | None = None) -> tuple[str, Callable[[set[str]], bool], str]:
    """Said where its cargo is shown; cites it, or another one."""
    return said_of(number), lambda shown: cargo(number) in shown, cargo(cites or number)


def choose_all(request: ServerRequest) -> str:
    rows = [json.loads(r) for r in parse_blocks(request.body["messages"])["EDGES"].splitlines()]
    return "\n".join(
        json.dumps({"id": r["id"], "reasoning": "It is about Fram.", "score": 0.5}) for r in rows
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph in which Fram carries thirty cargoes."""
    folder = tmp_path_factory.mktemp("influence")
    text = " ".join(f"Fram carried {cargo(n)}." for n in range(CARGOES))
    (folder / "fram.txt").write_text(f"{text}\n")
    settings = load_settings(None, {"summaries.enabled": False})
    parts = Components(settings, folder / "c", chat=ScriptedModel(), embedder=HashingEmbedder())
    with tgraph.open(folder / "graph", create=True, parts=parts) as kg:
        kg.index([folder / "fram.txt"])
    return folder


class Ship:
    """The graph, asked by way of a scripted server."""

    def __init__(self, root: Path, server: ScriptedServer, writer: Writer, limit: int) -> None:
        self.root, self.server, self.writer = root, server, writer
        server.script = type(server.script)(
            {
                "select_edges": choose_all,
                "synthesise_answer": writer,
                "answer_alone": json.dumps({"sentence": PARAMETRIC}),
            }
        )
        self.settings = {
            "chat.base_url": server.base_url,
            "chat.concurrency": 1,
            "embedding.provider": "hashing",
            "graph.edge_limit": limit,
            "graph.triple_limit": 100,
        }

    def open(self, **options: Any) -> tgraph.KnowledgeGraph:
        return tgraph.open(self.root, settings=self.settings, **options)

    def ask(self, kg: tgraph.KnowledgeGraph) -> str:
        """The session of an answer, in which the model forgot nothing."""
        loss, self.writer.loss = self.writer.loss, 0.0
        answer = kg.ask(QUESTION, history=[])
        self.writer.loss = loss
        assert len(answer.sentences) == len(self.writer.rows)
        return answer.session

    @property
    def written(self) -> int:
        return self.server.count("synthesise_answer") + self.server.count("answer_alone")


@pytest.fixture(scope="module")
def server():
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def ship(folder: Path, server: ScriptedServer, tmp_path: Path) -> Callable[..., Ship]:
    def make(rows: Rows, limit: int, loss: float = 0.0) -> Ship:
        root = shutil.copytree(folder / "graph", tmp_path / "graph")
        return Ship(root, server, Writer(rows, loss=loss), limit)

    return make


def chosen(kg: tgraph.KnowledgeGraph, session: str) -> list[str]:
    return [cargo_in(item.object_label) for item in kg.trace(session).selected]


def found_in(found: Influence) -> set[str]:
    return {cargo_in(item.label) for item in found.ranked_items}


@pytest.fixture(scope="module")
def nearest(folder: Path, server: ScriptedServer, tmp_path_factory) -> list[int]:
    """The cargoes that a question with a limit of eight selects."""
    root = shutil.copytree(folder / "graph", tmp_path_factory.mktemp("nearest") / "graph")
    with Ship(root, server, Writer([]), 8).open() as kg:
        return [int(name[-2:]) for name in chosen(kg, kg.ask(QUESTION, history=[]).session)]


# --- leave-one-out --------------------------------------------------------------------------------


@pytest.mark.slow
def test_leaving_one_out_finds_exactly_what_was_planted(ship, nearest):
    made = ship([], 8)
    with made.open() as kg:
        a, b, c, d, *_ = nearest
        made.writer.rows = [
            fact(a),
            fact(b, cites=c),  # says what b shows, and cites another
            (PARAMETRIC, lambda shown: True, cargo(d)),  # would be said in any case
        ]
        session = made.ask(kg)
        before, cost = made.written, estimate_influence(kg, session)
        assert made.written == before, "an estimate asks nobody"
        found = measure_influence(kg, session)
        again = made.written
        # and the two that lost something once more
        assert again - before == cost.calls + 2 <= cost.calls + cost.later
        repeated = measure_influence(kg, session)
        assert made.written == again, "a second run makes no call"
    assert (found.method, found.noise_floor) == ("leave-one-out", 0.0)
    assert found_in(found) == {cargo(a), cargo(b)}
    assert [item.weight for item in found.ranked_items] == pytest.approx([1 / 3, 1 / 3])
    assert [item.cited for item in found.ranked_items] in ([True, False], [False, True])
    depends = [[cargo_in(one.label) for one in s.depends_on] for s in found.sentences]
    assert depends == [[cargo(a)], [cargo(b)], []]
    assert [s.without_cited for s in found.sentences] == [False, True, True]
    assert [s.without_anything for s in found.sentences] == [False, False, True]
    assert found.cited_set.necessity == pytest.approx(1 / 3)
    assert found.cited_set.sufficiency == pytest.approx(2 / 3)
    assert found.parametric == pytest.approx(1 / 3)
    assert len(found.gap.cited_without_influence) == 2
    assert len(found.gap.influential_uncited) == 1
    assert found.gap.gap == pytest.approx(2 / 3 + 1 / 2)
    assert repeated.items == found.items
    assert repeated.usage["calls"] == 0


@pytest.mark.slow
def test_what_only_two_items_together_carry_depends_on_no_single_one(ship, nearest):
    made = ship([], 8)
    with made.open() as kg:
        a, b, c, d, *_ = nearest
        made.writer.rows = [
            (
                "Water or coal was bought.",
                lambda shown: bool(shown & {cargo(a), cargo(b)}),
                cargo(a),
            ),
            ("Dogs slept near sledges.", lambda shown: {cargo(c), cargo(d)} <= shown, cargo(c)),
        ]
        found = measure_influence(kg, made.ask(kg))
    either, both = found.sentences
    assert not either.depends_on
    assert (either.without_cited, either.without_places) == (True, True)
    assert {cargo_in(one.label) for one in both.depends_on} == {cargo(c), cargo(d)}


def test_a_reply_that_cannot_be_used_costs_its_ablation_alone(ship, nearest):
    a, b = nearest[:2]
    made = ship([fact(a)], 8)
    whole = made.writer

    def broken_without_b(request: ServerRequest) -> str:
        listed = parse_blocks(request.body["messages"])["EVIDENCE"]
        return whole(request) if cargo(b) in listed else '{"sentence": "Of'

    replies = {"select_edges": choose_all, "synthesise_answer": broken_without_b}
    made.server.script = type(made.server.script)(replies)
    with made.open() as kg:
        found = measure_influence(kg, made.ask(kg))
    weights = {cargo_in(item.label): item.weight for item in found.items}
    assert weights[cargo(a)] == 1.0
    assert weights[cargo(b)] is None
    assert found.dropped == {
        "ablation whose reply can't be used": 4
    }  # what is cited has no b either, and is tried three times
    assert found_in(found) == {cargo(a)}


@pytest.mark.slow
def test_many_items_are_left_out_one_by_one(ship):
    planted = [3, 11, 19, 27]
    made = ship([fact(n) for n in planted], 40)
    with made.open() as kg:
        session = made.ask(kg)
        items = len(chosen(kg, session))
        assert items > 20
        cost = estimate_influence(kg, session)
        found = measure_influence(kg, session)
    assert found.method == cost.method == "leave-one-out"
    assert found_in(found) == {cargo(n) for n in planted}
    assert [item.weight for item in found.ranked_items] == [0.25] * 4
    masks = {run.mask for run in found.runs if "one" in run.kinds}
    assert len(masks) == items


@pytest.mark.slow
def test_a_budget_holds_and_one_that_is_too_small_says_so(ship):
    made = ship([fact(5), fact(9)], 40)
    with made.open() as kg:
        session = made.ask(kg)
        before = made.written
        found = measure_influence(kg, session, budget=40)
        assert made.written - before <= 40
        assert {cargo(5), cargo(9)} <= found_in(found)
        with pytest.raises(UsageError, match="Too few calls"):
            measure_influence(kg, session, budget=9)


# --- noise ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("limit", [12, 40])
def test_a_model_that_forgets_raises_the_floor_and_what_is_unrelated_is_not_shown(
    ship, nearest, limit
):
    made = ship([], limit)
    with made.open() as kg:
        planted = nearest[:4]
        made.writer.rows = [fact(n) for n in planted]
        made.writer.loss = 0.12
        session = made.ask(kg)
        before = made.written
        measure_influence(kg, session, budget=50)
        assert made.written - before <= 50
        before, cost = made.written, estimate_influence(kg, session)
        found = measure_influence(kg, session)
        assert made.written - before <= cost.calls + cost.later
    kinds = [kind for run in found.runs for kind in run.kinds]
    assert (kinds.count("cited-only"), kinds.count("without-cited")) == (3, 3)
    shares = [r.said.count("1") / 4 for r in found.runs if "cited-only" in r.kinds and r.said]
    assert found.cited_set.sufficiency == pytest.approx(sum(shares) / 3)
    assert found.cited_set.spread == pytest.approx(max(shares) - min(shares))
    repetitions = [run.repeat for run in found.runs if "one" in run.kinds]
    assert max(repetitions) == 5, "leaving one out once tells little where answers differ anyway"
    assert found.noise_floor > 0
    assert min(s.reproduced for s in found.sentences) < 1
    assert found_in(found) == {cargo(n) for n in planted}
    noisy = [item for item in found.items if not item.influential]
    assert any(item.weight for item in noisy), "noise has weights, which are not shown"


# --- on record ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_is_sealed_on_record_shown_and_deterministic(ship):
    made, ids = ship([fact(4), fact(8)], 30), count(1)
    clock = ticking_clock()
    with made.open(clock=clock, uuid=lambda: f"00000000-0000-4000-8000-{next(ids):012d}") as kg:
        session = made.ask(kg)
        assert kg.trace(session).influence is None
        found = measure_influence(kg, session)
        rows = list(
            kg.sparql(
                "SELECT ?w ?s WHERE { ?i a tg:Influence ; tg:influencer ?e ; tg:influenced ?s ;"
                " tg:influenceWeight ?w ; tg:aboveFloor true . ?e tg:edge ?edge }"
            )
        )
        assert len(rows) == 4  # two edges, each for the answer and for its sentence
        kinds = kg.sparql(
            "SELECT ?k WHERE { GRAPH ?c { ?b tg:influenceAnalysis ?a ; tg:kind ?k } }"
        )
        assert [row["k"].value for row in kinds] == ["influence"]
        assert kg.integrity().ok
        trace = kg.trace(session)
        assert trace.influence is not None
        assert trace.influence.analysis == found.analysis
        assert set(trace.influence.above) == {item.selection for item in found.ranked_items}
        assert trace.influence.runs == len(found.runs)
        html = kg.export(session, "html").decode()
        assert "What the answer depends on" in html
        second = measure_influence(kg, session)
        assert second.items == found.items
        assert second.runs == found.runs


def test_a_sampled_analysis_of_an_earlier_version_is_shown(ship, nearest):
    made = ship([fact(nearest[0])], 8)
    with made.open() as kg:
        trace = kg.trace(made.ask(kg))
        record, answer = kg.opened.record(InfluenceRecord), answer_of(trace)
        agent = Agent("method", "lexical-support", "1")
        parameters = {"method": "sampled", "samples": 1, "seed": 0}
        record.start(answer, agent, agent, parameters, "explainability")
        record.record_ablation(record.ablation(["none", "sampled"], "1" * 8, 0), "1")
        record.influence(trace.selected[0].iri, answer, 0.5, 0.1, above=True)
        result = record.result({"necessity": 0.5}, {})
        record.out.add(result, (v.tg("lds"), 0.9))
        record.finish("completed")
        record.close()
        influence = kg.trace(trace.explain_id).influence
        assert influence is not None
        assert (influence.method, influence.lds, influence.runs) == ("sampled", 0.9, 1)
        assert influence.above == (trace.selected[0].iri,)
        assert "(LDS) 0.90" in kg.export(trace.explain_id, "html").decode()
        assert not check_shapes(kg.opened.read(), CATALOGUE)


@pytest.mark.slow
def test_an_interrupted_analysis_goes_on_where_it_stopped(ship, nearest):
    made = ship([], 8)
    with made.open() as kg:
        made.writer.rows = [fact(n) for n in nearest[:2]]
        session, stop = made.ask(kg), 5

        def impatient(progress) -> None:
            if progress.done == stop:
                raise KeyboardInterrupt

        before = made.written
        with pytest.raises(KeyboardInterrupt):
            measure_influence(kg, session, progress=impatient)
        assert made.written - before <= stop + 2
        cost = estimate_influence(kg, session)
        assert cost.known >= stop - 1
        measure_influence(kg, session)
        assert kg.trace(session).influence is not None
        statuses = kg.sparql("SELECT ?s WHERE { ?a a tg:InfluenceAnalysis ; tg:status ?s }")
        assert sorted(row["s"].value for row in statuses) == ["completed", "interrupted"]
        assert not check_shapes(kg.opened.read(), CATALOGUE)


# --- every mode, with a model and without ---------------------------------------------------------

TEXT = (
    "Marie Curie discovered Polonium in Paris in 1898. Pierre Curie worked with Marie Curie at the"
    " Sorbonne. Marie Curie taught physics at the Sorbonne.\n"
)


MODEL_MODES = [mode for mode in MODES if mode not in ("bypass", "sparql")]


@pytest.mark.slow
def test_every_mode_can_be_measured(tmp_path):
    (tmp_path / "curie.md").write_text(TEXT)
    for way, modes in (("model", MODEL_MODES), ("embedded", ["graph", "global", "drift"])):
        chat = ScriptedModel() if way == "model" else None
        parts = Components(
            load_settings(None), tmp_path / "c", chat=chat, embedder=HashingEmbedder()
        )
        with tgraph.open(tmp_path / "graph", create=True, parts=parts) as kg:
            kg.index([tmp_path / "curie.md"])
            for mode in modes:
                measured(kg, mode)


def measured(kg: tgraph.KnowledgeGraph, mode: str) -> None:
    answer = kg.ask("Where did Marie Curie discover Polonium?", mode, history=[])
    found = measure_influence(kg, answer.session, repeats=1)
    assert found.mode == mode
    uuid = answer.session.rpartition(":")[2]
    assert [item.selection for item in found.items] == [
        v.selected_iri(uuid, s.item.kind, s.index) for s in answer.selection
    ]
    assert [s.reproduced for s in found.sentences] == [1.0] * len(answer.sentences), mode
    assert found.cited_set.sufficiency is not None
    assert found.noise_floor == 0.0
    assert found.parametric == 0.0


def test_where_there_is_nothing_to_measure_it_says_so(ship, nearest):
    made = ship([], 8)
    with made.open() as kg:
        first = nearest[0]
        silent = kg.ask(QUESTION, history=[]).session
        with pytest.raises(UsageError, match="no answer to measure"):
            measure_influence(kg, silent)
        alone = kg.ask(QUESTION, "bypass", history=[]).session
        with pytest.raises(UsageError, match="bypass"):
            measure_influence(kg, alone)
        made.writer.rows = [fact(first)]
        answered = made.ask(kg)
    with (
        tgraph.open(made.root, settings={"embedding.provider": "hashing"}) as kg,
        pytest.raises(UsageError, match="no language model is set"),
    ):
        measure_influence(kg, answered)


# --- the command ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_says_the_price_first_and_prints_what_it_found(ship):
    made = ship([fact(4), fact(8)], 30)
    with made.open() as kg:
        made.ask(kg)
    flags = ["-r", str(made.root), "--base-url", made.server.base_url]
    flags += ["--embedding-provider", "hashing"]

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(cli, ["influence", *arguments, *flags])
        assert result.exit_code == 0, result.output
        return result.stdout

    before = made.written
    estimate = json.loads(run("--estimate", "--json"))
    jsonschema.validate(estimate, build_schemas()["influence-estimate"])
    assert "Calls:" in run("--estimate")
    assert made.written == before
    said = run("last")
    assert 0 <= made.written - before - estimate["calls"] <= estimate["later"]
    assert "Cargo04" in said
    assert "leave-one-out (each item left out in turn)" in said
    printed = json.loads(run("last", "--json"))
    jsonschema.validate(printed, build_schemas()["influence"])
    trace = CliRunner().invoke(cli, ["trace", "last", "-r", str(made.root)])
    assert "Influence" in trace.output


# --- the figures ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trials", "probability", "tests", "share"),
    [(4, 0.0, 1, 0.0), (1, 0.1, 1, 1.0), (4, 0.1, 20, 0.75), (100, 0.5, 1, 0.58), (3, 1.0, 9, 1.0)],
)
def test_chance_is_a_quantile_of_the_binomial_distribution(trials, probability, tests, share):
    assert by_chance(trials, probability, tests) == pytest.approx(share)


@given(st.integers(1, 40), st.data())
def test_a_plan_covers_every_item_within_its_budget(items, data):
    cited = data.draw(st.lists(st.frozensets(st.integers(0, items - 1)), min_size=1, max_size=4))
    budget = data.draw(st.none() | st.integers(60, 200))
    made = plan_ablations(items, cited, cited, budget=budget)
    assert budget is None or calls_of(made.ablations) + made.later <= budget
    assert {a.subject for a in made.list_ablations("one")} == set(range(items))
    assert made == plan_ablations(items, cited, cited, budget=budget)


def test_a_sentence_is_said_again_in_other_words_but_not_with_another_name_or_number():
    again = ClaimOverlap(["Curie discovered Polonium in 1898.", "The ship sank."])
    assert again.flag_repeated(["In 1898 Polonium was discovered by Curie."]) == (True, False)
    assert again.flag_repeated(["Curie discovered Radium in 1898.", "The ship never sank."]) == (
        False,
        False,
    )
    assert again.flag_repeated([]) == (False, False)
