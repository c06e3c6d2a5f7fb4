"""What a reader makes of an answer: order, short answer, confidence, refusal, and all on record."""

from __future__ import annotations

import pytest

import tgraph
from tests.support.small_reader import NONE, small_cross_encoder, small_reader
from tgraph.engine.components import Components
from tgraph.errors import UsageError
from tgraph.explain.render.wording import stage_lines
from tgraph.models.hub import locate_reader
from tgraph.models.reader import OnnxReader
from tgraph.models.reader_store import ReaderStore
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder

TEXTS = {
    "fram.md": """# Fram

The *Fram* was a ship of Fridtjof Nansen. Colin Archer built the *Fram* at Larvik. Otto Sverdrup was
captain of the *Fram*.
""",
    "belgica.md": """# Belgica

The Belgica was a ship of Adrien de Gerlache. Christian Jacobsen built the Belgica at Svelvik.
""",
}
QUESTION = "Where was the Fram built?"
SURE = {NONE: 0.0, "Larvik": 9.0, "Svelvik": 3.0}
UNSURE = {NONE: 9.0, "Larvik": -3.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reading")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    with opened(folder, SURE, create=True) as kg:
        assert not kg.index([folder / name for name in TEXTS]).failed
    return folder


def opened(folder, scores, create=False, **changed):
    reader = OnnxReader.of_folder(small_reader(folder / f"reader-{len(scores)}", scores))
    settings = {"answer.least_confidence": 0.3, **changed}
    parts = Components(
        load_settings(None, settings), folder / "cache", embedder=HashingEmbedder(), reader=reader
    )
    return tgraph.open(folder / "graph", create=create, settings=settings, parts=parts)


def uuid_of(answer):
    return answer.session.rpartition(":")[2]


def ask(folder, scores, mode="graph", **changed):
    with opened(folder, scores, **changed) as kg:
        return kg.ask(QUESTION, mode=mode, history=())


@pytest.mark.parametrize("mode", ["graph", "basic"])
def test_the_sentence_that_is_read_to_answer_comes_first(folder, mode):
    answer = ask(folder, SURE, mode)
    assert answer.short == "Larvik"
    assert answer.sentences[0].text == "Colin Archer built the *Fram* at Larvik."
    assert answer.confidence > 0.3


def test_below_the_least_confidence_there_is_no_evidence(folder):
    answer = ask(folder, UNSURE)
    assert answer.no_evidence
    assert not answer.sentences
    assert not answer.short
    assert answer.confidence < 0.3


def test_what_comes_nearest_is_quoted_beside_a_refusal(folder):
    answer = ask(folder, UNSURE)
    assert answer.notes
    for note in answer.notes:
        assert "The nearest passage" in note.text
        assert all(place.quote.split()[0] in note.text for place in note.places)


def test_the_confidence_that_is_asked_for_is_a_setting(folder):
    assert not ask(folder, UNSURE, **{"answer.least_confidence": 0.0}).no_evidence
    assert ask(folder, SURE, **{"answer.least_confidence": 1.0}).no_evidence


def test_the_judgement_is_on_record(folder):
    answer = ask(folder, SURE)
    with opened(folder, SURE) as kg:
        trace = kg.trace(answer.session)
        rows = list(
            kg.sparql(
                "PREFIX tg: <https://trustgraph.ai/ns/> PREFIX prov: <http://www.w3.org/ns/prov#>"
                " SELECT ?confidence ?short ?quote WHERE { GRAPH ?g {"
                " ?judgement a tg:Judgement ; tg:confidence ?confidence ; tg:shortAnswer ?short ;"
                " prov:wasGeneratedBy [ a tg:Reading ] ; prov:wasDerivedFrom ?evidence }"
                " GRAPH ?h { ?evidence tg:quote ?quote } }"
            )
        )
        told = "\n".join(stage_lines(trace, f"urn:trustgraph:prov:answer:{uuid_of(answer)}"))
    assert (trace.short, trace.confidence) == (answer.short, answer.confidence)
    assert f"probability {answer.confidence:.2f} that the documents answer" in told
    assert "Colin Archer built the *Fram* at Larvik." in {row["quote"].value for row in rows}


@pytest.mark.slow
@pytest.mark.parametrize("scores", [SURE, UNSURE], ids=["answered", "refused"])
def test_the_record_conforms_and_replays(folder, scores):
    answer = ask(folder, scores)
    with opened(folder, scores) as kg:
        assert kg.audit("shapes").passed
        assert kg.replay(answer.session).is_same


def test_a_session_that_was_read_replays_without_its_reader(folder):
    answer = ask(folder, SURE)
    settings = load_settings(None, {"reader.model": "none"})
    parts = Components(settings, folder / "cache", embedder=HashingEmbedder())
    with tgraph.open(folder / "graph", parts=parts) as kg:
        replay = kg.replay(answer.session)
    assert replay.is_same, replay


def test_without_a_reader_there_is_no_confidence(folder):
    settings = load_settings(None, {"reader.model": "none"})
    parts = Components(settings, folder / "cache", embedder=HashingEmbedder())
    with tgraph.open(folder / "graph", parts=parts) as kg:
        answer = kg.ask(QUESTION, mode="graph", history=())
    assert answer.sentences
    assert answer.confidence is None


LINKED = {
    "fram.md": "# Fram\n\nThe Fram was built by Colin Archer. Roald Amundsen sailed the Fram.\n",
    "archer.md": "# Colin Archer\n\nColin Archer was born in Larvik. Colin Archer liked cats.\n",
    "bread.md": "# Bread\n\nSourdough bread is baked in Paris. Bakers in Paris rise early.\n",
}
BRIDGED = "In which town was the person who built the Fram born?"


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("linked")
    for name, text in LINKED.items():
        (folder / name).write_text(text)
    with opened(folder, SURE, create=True) as kg:
        assert not kg.index([folder / name for name in LINKED]).failed
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["graph", "auto"])
def test_sentences_that_answer_together_are_read_together(linked, mode):
    with opened(linked, SURE) as kg:
        answer = kg.ask(BRIDGED, mode=mode, history=())
        rows = kg.sparql(
            "PREFIX tg: <https://trustgraph.ai/ns/> SELECT DISTINCT ?quote WHERE {"
            " GRAPH ?g { ?candidate tg:bridge ?evidence } GRAPH ?h { ?evidence tg:quote ?quote } }"
        )
        assert {row["quote"].value for row in rows} == {"The Fram was built by Colin Archer."}
        assert kg.audit("shapes").passed
        replay = kg.replay(answer.session)
        assert replay.is_same, replay.differences
    assert answer.short == "Larvik"
    quotes = {c.quote for s in answer.sentences for c in s.citations}
    assert {"The Fram was built by Colin Archer.", "Colin Archer was born in Larvik."} <= quotes


def test_a_cross_encoder_ranks_and_refuses_but_names_no_words(folder):
    made = small_cross_encoder(folder / "cross", {"Larvik": 9.0})
    settings = load_settings(None, {"reader.model": str(made)})
    parts = Components(settings, folder / "cache", embedder=HashingEmbedder())
    with tgraph.open(folder / "graph", parts=parts) as kg:
        answer = kg.ask(QUESTION, mode="graph", history=())
        assert kg.replay(answer.session).is_same
    assert answer.sentences[0].text == "Colin Archer built the *Fram* at Larvik."
    assert answer.confidence
    assert answer.confidence > 0.3
    assert not answer.short


def test_a_reader_that_was_pulled_is_used_by_its_name(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    made = small_reader(tmp_path / "mine", SURE)
    ReaderStore().pull(locate_reader(str(made)))
    settings = load_settings(None, {"reader.model": "mine"})
    parts = Components(settings, folder / "cache", embedder=HashingEmbedder())
    with tgraph.open(folder / "graph", parts=parts) as kg:
        answer = kg.ask(QUESTION, mode="graph", history=())
        steps = kg.trace(answer.session).steps
    assert answer.short == "Larvik"
    assert ("mine",) in [step.agents for step in steps if step.kind == "Reading"]


UNDER = (
    "Tailor is a project whose contributors are volunteers.",
    "A schedule adds stress to the volunteers.",
    "Therefore no dates will ever be given.",
)


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("a.md", "# Questions\n\n## {}"),
        ("a.md", "# Questions\n\n<h3 name='r'>\n{}\n</h3>"),
        ("a.html", "<h1>Questions</h1><h2>{}</h2><p>"),
    ],
)
def test_a_heading_that_asks_the_question_is_no_answer(tmp_path, name, heading):
    asked = "When is the next release?"
    (tmp_path / name).write_text(f"{heading.format(asked)}\n\n{' '.join(UNDER)}\n")
    settings = {"answer.least_confidence": 0.0}
    with tgraph.open(tmp_path / "graph", create=True, settings=settings) as kg:
        assert not kg.index([tmp_path / name]).failed
        answer = kg.ask(asked, mode="graph", history=())
    assert answer.sentences
    assert {sentence.text for sentence in answer.sentences} <= set(UNDER)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["graph", "local", "lightrag-mix"])
def test_an_answer_is_the_sentence_and_no_name_in_it(tmp_path, shipped_reader, mode):
    """The places of an entity are names, which stand in sentences that answer."""
    said = "In 1896 the engineer Sjoerd Wiarda raised the dyke at Hallum by two metres."
    others = "The work took three summers. The water board of Ferwerd paid for it."
    (tmp_path / "dyke.md").write_text(f"# The dyke at Hallum\n\n{said} {others}\n")
    with tgraph.open(tmp_path / "graph", create=True) as kg:
        assert not kg.index([tmp_path / "dyke.md"]).failed
        answer = kg.ask("Who raised the dyke at Hallum?", mode=mode, history=())
    assert (answer.short, answer.sentences[0].text) == ("Sjoerd Wiarda", said)


@pytest.mark.slow
def test_a_heading_answers_that_names_who_is_asked_for_and_an_office_must_be_stated(
    tmp_path, shipped_reader
):
    heading = "The Foreman Lecture: Owen Tully, Canals of the North"
    (tmp_path / "meeting.md").write_text(
        f"# Spring meeting\n\n## {heading}\n\nThe lecture looks at how canals were dug in the"
        " north. It lasts an hour.\n\n## Committee\n\n"
        "The Compliance Officer, Hannah Drewe, reads every contract.\n"
    )
    with tgraph.open(tmp_path / "graph", create=True) as kg:
        assert not kg.index([tmp_path / "meeting.md"]).failed
        lecture = kg.ask("Who gives the Foreman Lecture?", mode="graph", history=())
        deputy = kg.ask("Who is the deputy of the Compliance Officer?", mode="graph", history=())
        officer = kg.ask("Who is the Compliance Officer?", mode="graph", history=())
    assert (lecture.verdict, lecture.sentences[0].text) == ("answered", heading)
    assert lecture.sentences[0].citations[0].quote == heading
    assert deputy.verdict != "answered"
    assert (officer.verdict, officer.short) == ("answered", "Hannah Drewe")


def test_a_question_of_a_thousand_words_is_answered(folder):
    question = f"{'Tell me about ships, and how they were made. ' * 110}{QUESTION}"
    with opened(folder, SURE) as kg:
        answer = kg.ask(question, mode="basic", history=())
    assert "Larvik" in answer.text


def test_a_question_beyond_the_setting_is_refused_with_the_remedy(folder):
    with (
        opened(folder, SURE, **{"answer.longest_question": 50}) as kg,
        pytest.raises(UsageError, match=r"at most 50 are allowed.") as refused,
    ):
        kg.ask("Where " * 20, history=())
    assert "answer.longest_question" in refused.value.remedy
