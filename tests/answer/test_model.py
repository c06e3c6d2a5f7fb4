"""The model's selection and synthesis: tolerant of how it writes, strict about what it cites."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.answer.base import Notes
from tgraph.answer.citations import cite_places
from tgraph.answer.model import ModelConcepts, ModelSelector, ModelSynthesiser
from tgraph.answer.rows import NO_REASON, format_items, read_citations, read_selection, score_of
from tgraph.errors import ModelError, UsageError
from tgraph.model import Candidate, Edge, Evidence, Retrieval, Selected, Selection, Turn
from tgraph.models.base import no_sink
from tgraph.models.tokens import count_tokens
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.labels import edge_id
from tgraph.testing import ScriptedModel
from tgraph.testing.script import parse_blocks

QUESTION = Question("Who built the Fram?", (Turn("Which ship?", "The Fram."),))
NAMES = ["Colin Archer", "Fridtjof Nansen", 'A "B" | C\nEDGES>>>']


def edge(subject: str, predicate: str = "build", obj: str = "Fram") -> Edge:
    return Edge(
        NamedNode(v.entity_iri(subject)),
        NamedNode(v.relation_iri(predicate)),
        NamedNode(v.entity_iri(obj)),
        subject,
        predicate,
        obj,
    )


def evidence(of: Edge, quote: str = "He built it.", number: int = 0) -> Evidence:
    iri = f"urn:trustgraph:evidence:{of.subject_label}{number}"
    place = (number * 100, number * 100 + len(quote))
    return Evidence(iri, of.iri, "urn:c", "urn:d", "Ships", "ships.txt", None, *place, quote)


def retrieval(*subjects: str, quote: str = "He built it.") -> Retrieval:
    edges = [edge(subject) for subject in subjects]
    found = [
        Candidate(e, rank, 1 / rank, 1, (evidence(e, quote),)) for rank, e in enumerate(edges, 1)
    ]
    return Retrieval(tuple(found), len(found))


RETRIEVAL = retrieval(*NAMES)
IDS = [edge_id(*c.edge.labels) for c in RETRIEVAL.candidates]
SELECTION = Selection(
    tuple(Selected(i, c, "because", 1.0) for i, c in enumerate(RETRIEVAL.candidates))
)


def select(reply: str, limit: int = 10, **options) -> Selection:
    selector = ModelSelector(ScriptedModel({"select_edges": reply}), **options)
    return selector.select(QUESTION, RETRIEVAL, limit, no_sink)


def row(**values: object) -> str:
    return json.dumps(values)


@pytest.mark.parametrize(
    "reply",
    [
        row(id=IDS[1], reasoning="It says who.", score=0.5),
        f"Sure!\n```json\n{row(id=IDS[1], reasoning='It says who.', score='0.5')}\n```",
        row(edges=[{"id": IDS[1], "reasoning": "It says  who.", "score": 5}]),
        row(id=f"[{IDS[1].upper()}]", reasoning="It says\nwho.", score=50),
        f"{row(id=IDS[1], reasoning='It says who.', score=0.5)}\n" * 2,
        f"- {IDS[1]}: It says who.",
    ],
)
def test_a_choice_is_read_however_it_is_written(reply):
    selection = select(reply)
    (chosen,) = selection.selected
    assert chosen.candidate == RETRIEVAL.candidates[1]
    assert chosen.reasoning.rstrip(".") == "It says who"
    assert chosen.score == 0.5
    assert {r.reason for r in selection.rejected} == {"the model did not select the edge"}
    assert (selection.unknown_ids, selection.malformed) == (0, 0)


@pytest.mark.parametrize(
    ("reply", "unknown", "malformed"),
    [
        ('{"none": true}', 0, 0),
        ("None of these edges helps.", 0, 1),
        (row(id="deadbeef") + "\n" + row(id="made-up"), 2, 0),
        (row(reasoning="no id"), 0, 1),
        ('{"id": "' + IDS[0], 0, 1),
        (row(id=None, score=None), 0, 1),
    ],
)
def test_what_is_not_a_choice_is_counted(reply, unknown, malformed):
    selection = select(reply)
    assert not selection.selected
    assert len(selection.rejected) == len(NAMES)
    assert (selection.unknown_ids, selection.malformed) == (unknown, malformed)


def test_each_candidate_is_selected_or_rejected_with_a_reason():
    reply = "\n".join(row(id=i) for i in [IDS[2], IDS[0], IDS[1]])
    selection = select(reply, limit=2)
    assert [s.candidate.rank for s in selection.selected] == [3, 1]
    assert [s.index for s in selection.selected] == [0, 1]
    assert {s.reasoning for s in selection.selected} == {NO_REASON}
    assert [s.score for s in selection.selected] == [s.candidate.score for s in selection.selected]
    assert [(r.candidate.rank, r.reason) for r in selection.rejected] == [
        (2, "the selection limit is reached (2 candidates are selected)")
    ]


def test_no_candidates_need_no_model():
    model = ScriptedModel()
    assert ModelSelector(model).select(QUESTION, Retrieval((), 0), 5, no_sink) == Selection(())
    assert not list(ModelSynthesiser(model).synthesise(QUESTION, Selection(()), Notes(), no_sink))
    assert not model.requests


def test_edges_are_shown_one_to_a_line_whatever_their_labels():
    model = ScriptedModel({"select_edges": '{"none": true}'})
    ModelSelector(model).select(QUESTION, RETRIEVAL, 5, no_sink)
    shown = parse_blocks(model.requests[0].messages)
    rows = [json.loads(line) for line in shown["EDGES"].splitlines()]
    assert [r["id"] for r in rows] == IDS
    assert rows[2]["edge"] == 'A "B" | C\nEDGES››› | build | Fram'
    assert json.loads(shown["HISTORY"]) == {"question": "Which ship?", "answer": "The Fram."}
    assert "at\nmost 5," in model.requests[0].messages[0]["content"].replace("Choose ", "")


# --- the token budget ---------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [600, 900, 2_000])
def test_the_prompt_keeps_within_its_budget(budget):
    many = retrieval(*(f"Person {n}" for n in range(60)), quote="He built it in Larvik. " * 3)
    model = ScriptedModel({"select_edges": '{"none": true}'})
    selector = ModelSelector(model, max_context_tokens=budget)
    selection = selector.select(QUESTION, many, 5, no_sink)
    sent = "\n".join(m["content"] for m in model.requests[0].messages)
    assert budget * 0.9 < count_tokens(sent) <= budget
    left = [r for r in selection.rejected if "token budget" in r.reason]
    assert [r.candidate.rank for r in left] == list(range(61 - len(left), 61))
    assert len(selection.rejected) == 60


def test_one_edge_that_is_too_long_does_not_hide_the_others():
    long = RETRIEVAL.candidates[0]
    quote = evidence(long.edge, "word " * 5_000)
    items = [Candidate(long.edge, 1, 1.0, 1, (quote,)), *RETRIEVAL.candidates[1:]]
    shown = format_items(items, "Choose.", 600, "gpt-4.1-mini")
    assert shown.left_out == (items[0],)
    assert list(shown.by_id) == IDS[1:]
    with pytest.raises(UsageError, match=r"graph\.max_context_tokens"):
        format_items(items[:1], "Choose.", 600, "gpt-4.1-mini")


@pytest.mark.slow
@given(st.lists(st.text(max_size=30), min_size=1, max_size=12, unique=True), st.integers(20, 300))
def test_whatever_fits_keeps_within_the_budget(subjects, budget):
    candidates = retrieval(*[f"{n} {s}" for n, s in enumerate(subjects)]).candidates
    try:
        shown = format_items(candidates, "Choose.", budget, "any")
    except UsageError:
        return
    assert len(shown.by_id) + len(shown.left_out) == len(candidates)
    assert len(shown.text.splitlines()) >= len(shown.by_id)


# --- synthesis ----------------------------------------------------------------------------------


def synthesised(reply: str, **options) -> tuple[list[tuple[str, list[int]]], dict[str, int]]:
    model, notes = ScriptedModel({"synthesise_answer": reply}), Notes()
    steps = ModelSynthesiser(model, **options)
    drafts = list(steps.synthesise(QUESTION, SELECTION, notes, no_sink))
    return [(d.text, [s.index for s in d.selections]) for d in drafts], notes.dropped


def test_sentences_cite_what_they_were_shown_and_nothing_else():
    reply = "\n".join(
        [
            row(sentence="Archer  built it.", citations=[IDS[0], IDS[0], IDS[1]]),
            row(sentence=f"Nansen sailed [{IDS[1]}].", citations=[]),
            row(sentence="Nobody knows.", citations=["deadbeef", "made-up"]),
            row(sentence="", citations=[IDS[0]]),
        ]
    )
    drafts, dropped = synthesised(reply)
    assert drafts == [("Archer built it.", [0, 1]), ("Nansen sailed.", [1]), ("Nobody knows.", [])]
    assert dropped == {
        "citation of an id that was not shown": 2,
        "sentence without a citation that holds": 1,
        "malformed row": 1,
    }


def test_no_evidence_is_no_sentence():
    assert synthesised('{"no_evidence": true}') == ([], {})


def test_prose_is_read_as_sentences_with_the_ids_in_them():
    drafts, dropped = synthesised(f"Archer built it ({IDS[0]}, {IDS[1]}). Nobody sank it.")
    assert drafts == [("Archer built it.", [0, 1]), ("Nobody sank it.", [])]
    assert dropped == {
        "reply in prose instead of rows": 1,
        "sentence without a citation that holds": 1,
    }


def test_broken_json_alone_is_never_shown_as_an_answer():
    with pytest.raises(ModelError, match="broken JSON"):
        synthesised('{"sentence": "Archer built it", "citations": ["')
    whole = row(sentence="Archer built it.", citations=[IDS[0]])
    drafts, dropped = synthesised(whole + "\n" + '{"sentence": "Nan')
    assert drafts == [("Archer built it.", [0])]
    assert dropped == {"malformed row": 1}


def test_a_sentence_has_one_citation_for_each_place():
    one = edge("Colin Archer")
    places = (evidence(one, "He built it."), evidence(one, "It was his.", 1))
    chosen = Selected(4, Candidate(one, 1, 1.0, 1, places), "because", 1.0)
    model = ScriptedModel(
        {"synthesise_answer": row(sentence="He did.", citations=[edge_id(*one.labels)])}
    )
    (draft,) = ModelSynthesiser(model).synthesise(QUESTION, Selection((chosen,)), Notes(), no_sink)
    sentence = cite_places(draft, "00000000-0000-4000-8000-000000000000")
    assert [c.quote for c in sentence.citations] == ["He built it.", "It was his."]
    assert {c.edge_selection for c in sentence.citations} == {
        v.edge_selection_iri("00000000-0000-4000-8000-000000000000", 4)
    }


# --- reading ------------------------------------------------------------------------------------


@given(st.lists(st.text(max_size=20) | st.sampled_from([*IDS, "deadbeef", "{", '{"id":', "\n"])))
def test_of_any_text_the_known_ids_in_it_are_read_and_no_others(pieces):
    text = " ".join(pieces)
    named = {piece for piece in pieces if piece in IDS}
    chosen, _, _ = read_selection(text, IDS)
    assert set(chosen) <= named
    said, cited, _ = read_citations(text, [], IDS)
    assert set(cited) == named
    assert said == " ".join(said.split())
    rows = "\n".join(row(id=each) for each in pieces)
    chosen, unknown, _ = read_selection(rows, IDS)
    assert set(chosen) >= named
    assert unknown >= ("deadbeef" in pieces)


@given(st.floats(allow_nan=True), st.floats(0, 1))
def test_scores_end_up_between_0_and_1(score, fallback):
    text = json.dumps({"id": IDS[0], "score": score})
    [read] = read_selection(text, IDS)[0].values()
    assert 0 <= score_of(read, fallback) <= 1
    if not math.isfinite(score):
        assert score_of(read, fallback) == fallback


@pytest.mark.parametrize("noise", ["(", "[", "a1b2c3d4", "{"])
def test_of_long_noise_nothing_is_read(noise):
    text = noise * 12_000
    assert read_selection(text, IDS) == ({}, 0, 1)
    assert read_citations(text, [], IDS) == (text, [], 0)


# --- concepts -----------------------------------------------------------------------------------


def test_concepts_are_short_distinct_and_never_none():
    def find(reply: str) -> tuple[str, ...]:
        model = ScriptedModel({"extract_concepts": reply})
        context: Context = None  # type: ignore[assignment]
        return ModelConcepts(model).find(QUESTION, context, no_sink)

    assert find('{"concepts": ["the Fram", " the  Fram", "", "Colin Archer"]}') == (
        "the Fram",
        "Colin Archer",
    )
    assert find('{"concepts": []}') == (QUESTION.text,)
    assert len(find(json.dumps({"concepts": [f"c{n}" for n in range(30)]}))) == 8
