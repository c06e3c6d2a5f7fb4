"""Why-not on seeded cases, one or more for each cause, over real stores and a scripted model."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from itertools import count
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

import tgraph
from tgraph.cli.main import cli
from tgraph.engine.components import Components
from tgraph.engine.schemas import build_schemas
from tgraph.errors import UsageError
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel
from tgraph.testing.script import parse_blocks

CURIE = (
    "Marie Curie discovered Polonium. Marie Curie loved Paris. Pierre Curie taught in Lyon."
    " A heavy lamp stood on the desk.\n"
)
SHIPS = (
    "Colin Archer built the Fram. The Fram carried Roald Amundsen. Roald Amundsen met Helmer"
    " Hanssen. Helmer Hanssen drove Dogs. Dogs ate Pemmican.\n"
)
QUESTION = "What did Marie Curie discover?"


def first_edge_only(request) -> str:
    """An answer of one sentence, on the first edge that is shown."""
    row = json.loads(parse_blocks(request.messages)["EVIDENCE"].splitlines()[0])
    return json.dumps({"sentence": "It was found.", "citations": [row["id"]]})


def opened(folder: Path, replies=None, **limits):
    settings = {
        name.replace("__", ".") if "__" in name else f"graph.{name}": value
        for name, value in limits.items()
    }
    parts = Components(
        load_settings(None, settings),
        folder / "cache",
        chat=ScriptedModel(replies or {}),
        embedder=HashingEmbedder(),
    )
    return tgraph.open(folder / "graph", create=True, parts=parts, settings=settings)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("indexed")
    (folder / "curie.txt").write_text(CURIE)
    (folder / "ships.txt").write_text(SHIPS)
    with opened(folder) as graph:
        graph.index([folder / "curie.txt", folder / "ships.txt"])
    return folder


@pytest.fixture
def folder(indexed, tmp_path):
    return shutil.copytree(indexed, tmp_path / "copy")


def asked(folder, expected, *, replies=None, mode="graph", question=QUESTION, **limits):
    with opened(folder, replies, **limits) as graph:
        answer = graph.ask(question, mode, history=[])
        return graph.why_not(answer.session, expected)


@pytest.mark.parametrize(
    ("expected", "kind"),
    [
        ("Polonium", "entity"),
        ("POLONIUM", "entity"),
        ("urn:trustgraph:entity:polonium", "entity"),
        ("Marie Curie — discovered — Polonium", "fact"),
        ("Polonium was discovered by Marie Curie", "fact"),
        ("curie.txt", "document"),
    ],
)
def test_what_the_answer_uses_is_used_however_it_is_named(folder, expected, kind):
    found = asked(folder, expected)
    assert (found.kind, found.cause) == (kind, "used")
    assert found.sentences[0] == 1


@pytest.mark.parametrize("mode", ["graph", "local", "basic", "ppr"])
def test_what_no_document_says_is_not_in_the_corpus(folder, mode):
    for expected in ("penicillin", "Alexander Fleming — discovered — Penicillin"):
        assert asked(folder, expected, mode=mode).cause == "not-in-corpus"


def test_what_no_edge_states_is_not_extracted_and_its_place_is_told(folder):
    found = asked(folder, "a heavy  LAMP")
    assert found.cause == "not-extracted"
    (place,) = found.places
    assert place.quote == "A heavy lamp stood on the desk."
    assert CURIE[place.start : place.end] == place.quote
    assert place.path.endswith("curie.txt")


def test_a_fact_whose_ends_are_known_but_not_the_fact_is_not_extracted(folder):
    found = asked(folder, "Helmer Hanssen — ate — Dogs")
    assert (found.kind, found.cause) == ("fact", "not-extracted")
    assert [place.quote for place in found.places] == ["Helmer Hanssen drove Dogs."]


def test_what_no_entity_of_the_question_leads_to_is_not_linked(folder):
    for expected in ("Pemmican", "Dogs — ate — Pemmican", "ships.txt", "Dogs ate Pemmican"):
        found = asked(folder, expected, entity_limit=1)
        assert (found.cause, found.limit) == ("not-linked", None), expected


def test_what_the_complete_list_has_after_the_candidates_is_beyond_that_limit(folder):
    found = asked(folder, "Pemmican", max_subgraph_size=3)
    assert (found.cause, found.limit, found.cutoff) == ("beyond-limit", "max-subgraph-size", 3)
    assert found.rank is not None
    assert found.rank > 3


def test_what_lies_too_many_hops_away_is_beyond_the_path_length(folder):
    question = "Who built the Fram?"
    found = asked(
        folder, "Colin Archer", question="Who is Helmer Hanssen?", entity_limit=1, max_path_length=1
    )
    assert (found.cause, found.limit, found.cutoff) == ("beyond-limit", "max-path-length", 1)
    assert found.rank == 3
    assert asked(folder, "Colin Archer", question=question).cause == "used"


def test_an_edge_that_others_of_its_entity_went_before_is_beyond_the_triple_limit(folder):
    found = asked(folder, "Paris", entity_limit=1, triple_limit=1, max_path_length=1)
    assert (found.cause, found.limit) == ("beyond-limit", "triple-limit")
    assert (found.rank, found.cutoff) == (2, 1)


def test_a_chunk_beyond_the_nearest_is_told_with_its_exact_rank(folder):
    found = asked(folder, "ships.txt", mode="basic", basic_search__k=1)
    assert (found.cause, found.limit, found.rank, found.cutoff) == ("beyond-limit", "k", 2, 1)


def test_what_was_not_chosen_comes_with_the_reason_on_record(folder):
    found = asked(folder, "Pemmican")
    assert found.cause == "not-selected"
    assert found.items[0].reason == "the model did not select the edge"
    assert found.items[0].reason in found.reason
    assert found.rank == found.items[0].rank


def test_what_was_selected_and_cited_by_no_sentence_is_not_used(folder):
    replies = {"synthesise_answer": first_edge_only}
    found = asked(folder, "Paris", replies=replies)
    assert found.cause == "not-used"
    assert found.items[0].label == "Marie Curie loved Paris"
    assert asked(folder, "Polonium", replies=replies).cause == "used"


def test_what_one_edge_brought_into_the_selection_and_another_did_not_is_not_used(folder):
    def select(request) -> str:
        rows = [json.loads(line) for line in parse_blocks(request.messages)["EDGES"].splitlines()]
        chosen = [row for row in rows if {"Polonium", "Colin Archer"} & {*row["edge"].split(" | ")}]
        return "\n".join(json.dumps({"id": row["id"], "score": 1}) for row in chosen)

    def synthesise(request) -> str:
        lines = parse_blocks(request.messages)["EVIDENCE"].splitlines()
        row = next(json.loads(line) for line in lines if "Polonium" in line)
        return json.dumps({"sentence": "It was Polonium.", "citations": [row["id"]]})

    replies = {"select_edges": select, "synthesise_answer": synthesise}
    found = asked(folder, "Fram", replies=replies)
    assert found.cause == "not-used"
    assert [item.label for item in found.items] == ["Colin Archer built Fram"]
    assert asked(folder, "Roald Amundsen", replies=replies).cause == "not-selected"


def test_knowledge_that_came_later_was_not_in_the_corpus_then(folder):
    (folder / "late.txt").write_text("Ernest Shackleton bought the Nimrod.\n")
    with opened(folder) as graph:
        before = graph.ask(QUESTION, history=[])
        graph.index([folder / "late.txt"])
        for expected in ("Nimrod", "late.txt"):
            found = graph.why_not(before.session, expected)
            assert found.cause == "not-in-corpus", expected
            assert any("changed since" in note for note in found.notes)
        after = graph.ask("What did Ernest Shackleton buy?", history=[])
        found = graph.why_not(after.session, "Nimrod")
        assert (found.cause, found.notes) == ("used", ())


def test_a_document_that_changed_is_judged_as_it_was(indexed, folder):
    with opened(folder) as graph:
        before = graph.ask(QUESTION, history=[])
        changed = indexed / "curie.txt"
        changed.write_text("Marie Curie discovered Radium.\n")
        graph.index([changed])
        changed.write_text(CURIE)
        assert graph.why_not(before.session, "Polonium").cause == "used"
        assert graph.why_not(before.session, "Radium").cause == "not-in-corpus"
        after = graph.ask(QUESTION, history=[])
        assert graph.why_not(after.session, "Radium").cause == "used"
        found = graph.why_not(after.session, "Polonium")
        assert (found.cause, found.notes) == ("not-in-corpus", ())
        assert (
            f"{changed} states the entity, but had been replaced by a new version (on "
            in found.reason
        )
        assert graph.why_not(before.session, "Radium").notes[-1].endswith(f": {changed}.")


def test_what_a_replaced_document_said_without_an_edge_is_found_in_it(indexed, folder):
    changed = indexed / "curie.txt"
    changed.write_text("Marie Curie discovered Radium.\n")
    with opened(folder) as graph:
        graph.index([changed])
        changed.write_text(CURIE)
        answer = graph.ask(QUESTION, history=[])
        for expected in ("a heavy lamp", "Lamp — stood on — Desk"):
            found = graph.why_not(answer.session, expected)
            assert found.cause == "not-in-corpus"
            assert "but had been replaced by a new version" in found.reason
        found = graph.why_not(answer.session, "Lamp — stood on — Paris")
        assert found.reason.startswith("No document in use")


class CountingEmbedder(HashingEmbedder):
    """A hashing embedder that counts its calls."""

    calls = 0

    def embed(self, *args, **more):
        self.calls += 1
        return super().embed(*args, **more)


@pytest.mark.parametrize("mode", ["graph", "basic", "local", "ppr", "lightrag-local"])
def test_asking_why_not_asks_no_model_and_no_embedder_and_records_nothing(folder, mode):
    model, embedder = ScriptedModel(), CountingEmbedder()
    parts = Components(load_settings(None), folder / "cache", chat=model, embedder=embedder)
    with tgraph.open(folder / "graph", parts=parts) as graph:
        answer = graph.ask(QUESTION, mode, history=[])
        before = len(model.requests), embedder.calls, len(graph.sessions.summaries())
        assert embedder.calls
        graph.why_not(answer.session, "Pemmican")
        assert (len(model.requests), embedder.calls, len(graph.sessions.summaries())) == before


@pytest.mark.slow
def test_every_citation_and_selection_of_each_mode_is_accounted_for(folder):
    """Whatever a session used is used, and whatever it only selected is not used."""
    numbers = count()
    for mode in ("graph", "local", "basic", "ppr"):
        with opened(folder) as graph:
            answer = graph.ask(QUESTION, mode, history=[])
            trace = graph.trace(answer.session)
            for sentence in trace.sentences:
                for place in sentence.citations:
                    assert graph.why_not(answer.session, place.chunk).cause == "used"
                    next(numbers)
            cited = {s for sentence in trace.sentences for s in sentence.edge_selections}
            for item in trace.selected:
                if item.iri in cited and item.kind == "edge":
                    assert graph.why_not(answer.session, item.item).cause == "used"
    assert next(numbers) > 4


def test_the_command_tells_the_cause_and_prints_its_schema(folder):
    with opened(folder) as graph:
        answer = graph.ask(QUESTION, history=[])
        made = asdict(graph.why_not(answer.session, "Pemmican"))
    root = ["-r", str(folder / "graph")]
    shown = CliRunner().invoke(cli, ["why-not", "last", "Pemmican", *root])
    assert shown.exit_code == 0
    assert "cause: retrieved but not selected" in shown.stdout
    printed = json.loads(
        CliRunner().invoke(cli, ["why-not", "last", "Pemmican", "--json", *root]).stdout
    )
    assert printed == json.loads(json.dumps(made))
    jsonschema.validate(printed, build_schemas()["why-not"])


def test_an_empty_expectation_and_an_unknown_session_are_refused(folder):
    with opened(folder) as graph:
        answer = graph.ask(QUESTION, history=[])
        with pytest.raises(UsageError, match="empty"):
            graph.why_not(answer.session, "  ")
        with pytest.raises(UsageError, match="There is no session"):
            graph.why_not("ffff", "Pemmican")
