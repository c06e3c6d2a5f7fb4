"""Verification: ALCE's measures, the way back to where support was lost, and the record of both."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import tgraph
from tests.support.small_reader import small_reader
from tgraph.answer.support import PROVEN, LexicalJudge, ReaderJudge, Support
from tgraph.cli.main import cli
from tgraph.engine.components import Components
from tgraph.engine.schemas import build_schemas
from tgraph.errors import EndpointError, UsageError
from tgraph.explain.assess.support_lineage import Verifier
from tgraph.explain.assess.verification import citation_precision, citation_recall
from tgraph.explain.audit.named_audits import find_audit, run_audit
from tgraph.model import Agent
from tgraph.models.base import no_sink
from tgraph.models.reader import OnnxReader
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel
from tgraph.testing.script import parse_blocks
from tgraph.vocabulary import collection_iri

TEXT = (
    "Marie Curie discovered Polonium in 1898. Marie Curie loved Paris."
    " Pierre Curie taught Marie Curie.\n"
)
QUESTION = "What did Marie Curie discover?"


WORDS = ("Curie", "found", "radium", "1898", "not", "ice", "ship")


# --- the judge by words ---------------------------------------------------------------------------


def lexical(statement: str, *texts: str) -> str:
    return LexicalJudge().judge("", statement, texts, no_sink).verdict


@pytest.mark.parametrize(
    ("statement", "texts", "verdict"),
    [
        ("The Fram sailed.", ["In June the Fram\n sailed. It was cold."], "supported"),
        ("The Fram sailed.", ["It was June. The Fram\n sailed."], "quoted"),
        ("Polonium was discovered by Curie.", ["Curie discovered Polonium."], "supported"),
        ("Curie discovered Polonium in 1898.", ["Curie discovered Polonium."], "partly"),
        ("Curie discovered Polonium in 1899.", ["In 1898 Curie discovered Polonium."], "partly"),
        ("It was discovered by Becquerel.", ["Curie discovered Polonium."], "unsupported"),
        ("Curie did not discover Polonium.", ["Curie discovered Polonium."], "unsupported"),
        ("Curie discovered Polonium.", ["Curie never discovered Polonium."], "unsupported"),
        ("The ship sank in the ice.", ["Curie discovered Polonium."], "unsupported"),
        ("Curie found it.", [], "unsupported"),
        ("Curie built the Fram.", ["Curie found Polonium.", "Archer built the Fram."], "supported"),
    ],
)
def test_words_support_what_they_have_and_no_number_name_or_denial_more(statement, texts, verdict):
    assert lexical(statement, *texts) == verdict


@given(st.lists(st.sampled_from(WORDS), min_size=1))
def test_what_is_quoted_is_called_so_and_more_texts_of_the_same_change_nothing(words):
    text = " ".join(words)
    assert lexical(text, text) == "quoted"
    assert lexical(text, text, text) == "quoted"


# --- the judge by a reader, beside the words ------------------------------------------------------


@pytest.fixture(scope="module")
def by_reader(tmp_path_factory):
    scores = {"built": 3.0, "sank": -3.0, "ice": -0.5}
    return OnnxReader.of_folder(
        small_reader(tmp_path_factory.mktemp("judge"), scores, support=True)
    )


@pytest.mark.parametrize(
    ("statement", "texts", "verdict"),
    [
        ("Larvik saw her made.", ["At Larvik they built her."], "supported"),
        ("They made her at Larvik.", ["Larvik .", "built ."], "supported"),
        ("In the ice she sank.", ["She sank in the ice."], "partly"),
        ("Somebody made a ship.", ["It sank ."], "unsupported"),
        ("The Fram sailed.", ["It was June. The Fram\n sailed."], "quoted"),
        ("The Fram was made at Larvik.", ["built her"], "unsupported"),
        ("She was made in 1892.", ["They built her in 1893."], "unsupported"),
        ("She was never built.", ["They built her."], "unsupported"),
        ("She was built.", [], "unsupported"),
    ],
)
def test_the_reader_judges_what_words_do_not_settle(by_reader, statement, texts, verdict):
    assert ReaderJudge(by_reader).judge("", statement, texts, no_sink).verdict == verdict


def test_long_texts_are_read_to_their_end(by_reader):
    text = "Nothing was said of it there. " * 100 + "They built her."
    found = ReaderJudge(by_reader).judge("", "Somebody made a ship.", [text], no_sink)
    assert found.verdict == "supported"
    assert "95%" in found.reason


# --- the measures ---------------------------------------------------------------------------------


class NeededTogether:
    """A judge for whom a statement needs all texts that hold one of its letters."""

    agent = Agent("method", "letters", "1")
    prompts = ()

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def judge(self, question: str, statement: str, texts: Sequence[str], sink) -> Support:
        self.asked.append(tuple(texts))
        has = set("".join(texts))
        return Support("supported" if set(statement) <= has else "unsupported", "letters")


def judged(text: str, quotes: Sequence[str], trace):
    place = trace.sentences[0].citations[0]
    citations = tuple(replace(place, quote=q, start=n, end=n + 1) for n, q in enumerate(quotes))
    sentence = replace(trace.sentences[0], text=text, citations=citations)
    return Verifier(trace, _NoOrigins(), NeededTogether(), no_sink).sentence(sentence)  # type: ignore[arg-type]


class _NoOrigins:
    def of_item(self, item):
        from tgraph.explain.trace.derivation import DerivationNode

        return DerivationNode(item.item, "description", "")

    def before(self, node):
        return []


def test_recall_and_precision_are_alces(graph):
    trace = graph.trace(graph.ask(QUESTION, history=[]).session)
    both = judged("ab", ["a", "b"], trace)  # together only: both are needed
    spare = judged("a", ["a", "z"], trace)  # z neither supports nor is needed
    each = judged("a", ["a", "ab"], trace)  # each supports alone
    none = judged("x", ["a", "b"], trace)
    bare = judged("a", [], trace)
    assert [s.verdict for s in (both, spare, each, none, bare)] == [
        "supported", "supported", "supported", "unsupported", "uncited",
    ]  # fmt: skip
    assert [c.precise for c in both.citations] == [True, True]
    assert [c.precise for c in spare.citations] == [True, False]
    assert [c.precise for c in each.citations] == [True, True]
    sentences = (both, spare, each, none, bare)
    assert citation_recall(sentences) == pytest.approx(3 / 5)
    assert citation_precision(sentences) == pytest.approx(5 / 8)
    assert citation_recall(()) is None
    assert citation_precision((bare,)) is None


# --- over a graph ---------------------------------------------------------------------------------


def opened(folder: Path, replies=None):
    parts = Components(
        load_settings(None),
        folder / "cache",
        chat=ScriptedModel(replies or {}),
        embedder=HashingEmbedder(),
    )
    return tgraph.open(folder / "graph", create=True, parts=parts)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify")
    (folder / "curie.txt").write_text(TEXT)
    with opened(folder) as kg:
        kg.index([folder / "curie.txt"])
    return folder


@pytest.fixture
def folder(indexed, tmp_path):
    return shutil.copytree(indexed, tmp_path / "copy")


@pytest.fixture
def graph(folder):
    with opened(folder) as kg:
        yield kg


def saying(*sentences: str) -> Callable[..., str]:
    """A synthesiser that says so, citing everything that it was shown."""

    def reply(request) -> str:
        rows = [
            json.loads(line) for line in parse_blocks(request.messages)["EVIDENCE"].splitlines()
        ]
        ids = [row["id"] for row in rows]
        return "\n".join(json.dumps({"sentence": s, "citations": ids}) for s in sentences)

    return reply


def words_judge(request) -> str:
    """The judge of the model, scripted: the judge by words."""
    data = parse_blocks(request.messages)
    texts = [json.loads(line)["text"] for line in data["TEXTS"].splitlines()]
    found = LexicalJudge().judge("", data["STATEMENT"], texts, no_sink)
    said = {"supported": "full", "quoted": "full", "partly": "partial", "unsupported": "none"}
    return json.dumps({"reason": found.reason, "support": said[found.verdict]})


def test_an_answer_that_quotes_is_called_quoted_and_the_verdicts_are_on_record(folder):
    with opened(folder, {"synthesise_answer": saying("Marie Curie loved Paris.")}) as kg:
        answer = kg.ask(QUESTION, history=[])
        found = kg.verify(answer.session, lexical=True)
        assert (found.is_supported, found.recall, found.judge) == (True, 1.0, "lexical-support")
        assert [s.verdict for s in found.sentences] == ["quoted"]
        assert found.sentences[0].trail == ()
        trace = kg.trace(answer.session)
        assert [s.verdict for s in trace.sentences] == ["quoted"]
        assert len(kg.sessions.summaries()) == 1
        rows = kg.sparql(
            "SELECT ?k WHERE { GRAPH ?c { ?b tg:verification ?v ; tg:kind ?k ; tg:hash ?hash } }"
        )
        assert [row["k"].value for row in rows] == ["verification"]
        shapes = run_audit(
            kg.opened.read(),
            collection_iri("explainability"),
            find_audit("shapes"),
            [answer.session],
        )
        assert shapes.passed


def test_what_the_writer_made_up_is_lost_at_the_answer(folder):
    replies = {"synthesise_answer": saying("Marie Curie discovered Radium in 1902.")}
    with opened(folder, replies) as kg:
        answer = kg.ask(QUESTION, history=[])
        (sentence,) = kg.verify(answer.session, lexical=True).sentences
        assert sentence.verdict in ("partly", "unsupported")
        assert sentence.lost is not None
        assert (sentence.lost.step, sentence.lost.item) == ("answer", sentence.sentence)
        assert [step.step for step in sentence.trail] == ["selection"]
        assert kg.trace(answer.session).sentences[0].lost_at == "answer"


def test_what_an_extraction_made_up_is_lost_there(tmp_path):
    """One falsified edge description: the writer repeats it, the document doesn't say it."""
    (tmp_path / "curie.txt").write_text(TEXT)
    false = "Marie Curie discovered Polonium together with Ernest Rutherford."

    def extraction(request) -> str:
        return json.dumps(
            {
                "entities": [
                    {"name": "Marie Curie", "type": "person", "description": "A physicist."},
                    {"name": "Polonium", "type": "element", "description": "An element."},
                ],
                "relationships": [
                    {
                        "subject": "Marie Curie",
                        "predicate": "discovered",
                        "object": "Polonium",
                        "description": false,
                        "keywords": ["discovery"],
                        "strength": 9,
                        "quote": "Marie Curie discovered Polonium in 1898.",
                    }
                ],
                "attributes": [],
            }
        )

    replies = {"extract_graph": extraction, "synthesise_answer": saying(false)}
    with opened(tmp_path, replies) as kg:
        kg.index([tmp_path / "curie.txt"])
        answer = kg.ask(QUESTION, history=[])
        (sentence,) = kg.verify(answer.session, lexical=True).sentences
        assert sentence.lost is not None
        assert sentence.lost.step == "extraction", sentence.trail
        assert sentence.lost.item.startswith("urn:trustgraph:evidence:")


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong", ["in 1950", "in Moscow", "with Niels Bohr", "at the Sorbonne 1911"]
)
def test_what_a_report_made_up_is_lost_at_the_report(tmp_path, wrong):
    """One falsified report: the points and the answer repeat it."""
    (tmp_path / "curie.txt").write_text(TEXT)
    false = f"Marie Curie discovered Polonium {wrong}."

    def report(request) -> str:
        rows = [
            json.loads(x)
            for b in parse_blocks(request.messages).values()
            for x in b.splitlines()
            if x.startswith("{")
        ]
        ids = [row["id"] for row in rows if "id" in row]
        return json.dumps(
            {
                "title": "Curie",
                "summary": "About Curie.",
                "rating": 5,
                "rating_explanation": "It matters.",
                "findings": [{"summary": false, "explanation": false, "citations": ids}],
            }
        )

    def points(request) -> str:
        rows = [
            json.loads(x)
            for b in parse_blocks(request.messages).values()
            for x in b.splitlines()
            if x.startswith("{")
        ]
        ids = [row["id"] for row in rows if "id" in row]
        return json.dumps({"points": [{"description": false, "score": 90, "citations": ids}]})

    replies = {
        "community_report": report,
        "map_points": points,
        "synthesise_answer": saying(false),
        "judge_support": words_judge,
    }
    with opened(tmp_path, replies) as kg:
        kg.index([tmp_path / "curie.txt"])
        answer = kg.ask(QUESTION, "global", history=[])
        found = kg.verify(answer.session)
        (sentence,) = found.sentences
        assert found.judge == "scripted"
        assert sentence.lost is not None
        assert sentence.lost.step == "report", sentence.trail
        assert [step.step for step in sentence.trail][:2] == ["selection", "report"]


def test_a_sentence_that_cites_another_edge_is_lost_at_the_answer(folder):
    def wrong(request) -> str:
        rows = [
            json.loads(line) for line in parse_blocks(request.messages)["EVIDENCE"].splitlines()
        ]
        row = next(r for r in rows if "Polonium" in json.dumps(r))
        said = "Pierre Curie taught Marie Curie."
        return json.dumps({"sentence": said, "citations": [row["id"]]})

    with opened(folder, {"synthesise_answer": wrong}) as kg:
        answer = kg.ask(QUESTION, history=[])
        (sentence,) = kg.verify(answer.session, lexical=True).sentences
        assert sentence.verdict not in PROVEN
        assert sentence.lost is not None
        assert sentence.lost.step == "answer"


def test_what_the_chunk_says_beside_the_cited_characters_is_lost_at_the_citation(folder):
    both = "Marie Curie discovered Polonium in 1898 and loved Paris."
    with opened(folder, {"synthesise_answer": saying(both)}) as kg:
        answer = kg.ask(QUESTION, "basic", history=[])
        (sentence,) = kg.verify(answer.session, lexical=True).sentences
        assert sentence.verdict == "partly"
        assert sentence.lost is not None
        assert (sentence.lost.step, sentence.lost.item) == ("citation", sentence.sentence)
        assert [step.verdict for step in sentence.trail] == ["supported"]


def test_the_model_judges_by_the_prompt_which_is_on_record(folder):
    replies = {"judge_support": words_judge}
    with opened(folder, replies) as kg:
        answer = kg.ask(QUESTION, history=[])
        found = kg.verify(answer.session)
        assert found.judge == "scripted"
        assert found.usage["calls"] >= 1
        rows = kg.sparql(
            "SELECT ?name WHERE { ?v a tg:Verification ; prov:qualifiedAssociation ?a ."
            " ?a prov:hadPlan/rdfs:label ?name }"
        )
        assert {row["name"].value for row in rows} == {"judge_support"}


def test_a_judgement_that_cant_be_used_is_undecided_and_counted(folder):
    with opened(folder, {"judge_support": "I would rather not say."}) as kg:
        answer = kg.ask(QUESTION, history=[])
        found = kg.verify(answer.session)
        assert set(found.counts) == {"undecided"}
        assert found.is_supported
        assert (found.recall, found.precision) == (None, None)
        assert sum(found.dropped.values()) == len(found.sentences)


def test_an_endpoint_that_fails_ends_the_verification_and_that_is_on_record(folder):
    with opened(folder, {"judge_support": EndpointError("It is gone.")}) as kg:
        answer = kg.ask(QUESTION, history=[])
        with pytest.raises(EndpointError):
            kg.verify(answer.session)
        rows = kg.sparql("SELECT ?s WHERE { ?v a tg:Verification ; tg:status ?s }")
        assert [row["s"].value for row in rows] == ["failed"]


def test_a_later_verification_is_what_the_trace_shows(folder):
    replies = {"judge_support": json.dumps({"reason": "no", "support": "none"})}
    with opened(folder, replies) as kg:
        answer = kg.ask(QUESTION, history=[])
        assert kg.verify(answer.session, lexical=True).is_supported
        before = kg.trace(answer.session)
        assert not kg.verify(answer.session).is_supported
        after = kg.trace(answer.session)
        assert {s.verdict for s in before.sentences} == {"quoted"}
        assert {s.verdict for s in after.sentences} == {"unsupported"}


@pytest.mark.slow
def test_the_way_back_reads_what_the_session_read_and_after_an_erasure_says_so(folder):
    false = "Marie Curie discovered Polonium in Moscow."
    other = folder / "other.txt"
    other.write_text("The Fram sailed to the south.\n")
    with opened(folder, {"synthesise_answer": saying(false)}) as kg:
        answer = kg.ask(QUESTION, history=[])
        asked = kg.verify(answer.session, lexical=True)
        assert asked.notes == ()
        other.write_text(f"{false}\n")
        kg.index([other])
        later = kg.verify(answer.session, lexical=True)
        assert [s.lost for s in later.sentences] == [s.lost for s in asked.sentences]
        assert "the earlier knowledge is rebuilt" in later.notes[0]
        kg.purge("other.txt", reason="It was forged.")
        erased = kg.verify(answer.session, lexical=True)
        assert "Text was erased after the session" in erased.notes[0]
        assert [s.verdict for s in erased.sentences] == ["undecided"], "only that had “Moscow”"
        assert erased.dropped == {"sentence that can't be judged: text was erased": 1}
        assert erased.is_supported


def test_a_session_without_an_answer_can_not_be_verified(graph):
    answer = graph.ask("zxcvb qwrtp?", history=[])
    if answer.no_evidence:
        with pytest.raises(UsageError, match="no answer to verify"):
            graph.verify(answer.session)


@pytest.mark.slow
def test_the_command_ends_with_4_where_support_is_missing(folder):
    for said, code in (("Marie Curie loved Paris.", 0), ("Niels Bohr sailed in 1950.", 4)):
        with opened(folder, {"synthesise_answer": saying(said)}) as kg:
            kg.ask(QUESTION, history=[])
        root = ["-r", str(folder / "graph"), "--lexical"]
        result = CliRunner().invoke(cli, ["verify", "last", *root])
        assert result.exit_code == code, result.output
        assert "Citation recall" in result.stdout
        result = CliRunner().invoke(cli, ["verify", "--json", *root])
        assert result.exit_code == code
        printed = json.loads(result.stdout)
        jsonschema.validate(printed, build_schemas()["verify"])
        assert printed["passed"] == (code == 0)


# --- by a reader ---


def read_by(folder: Path, *, support: bool, **settings: object):
    made = small_reader(folder / f"reader-{support}", {"discovered": 2.0}, support=support)
    reader = OnnxReader.of_folder(made)
    parts = Components(
        load_settings(None, settings), folder / "cache", embedder=HashingEmbedder(), reader=reader
    )
    return tgraph.open(folder / "graph", parts=parts)


@pytest.mark.slow
def test_without_a_model_the_reader_verifies_and_its_calls_are_on_record(folder):
    with opened(
        folder, {"synthesise_answer": saying("Polonium was found by Curie in 1898.")}
    ) as kg:
        answer = kg.ask(QUESTION, history=[])
    with read_by(folder, support=True) as kg:
        found = kg.verify(answer.session)
        assert [s.verdict for s in found.sentences] == ["supported"]
        assert found.judge == "reader-True"
        assert found.usage["calls"] >= 1
        rows = kg.sparql(
            "SELECT ?kind WHERE { GRAPH ?g { ?v a tg:Verification ; tg:call ?call ."
            " ?call tg:callKind ?kind } }"
        )
        assert {row["kind"].value for row in rows} == {"embedding", "reading", "support"}
        shapes = run_audit(
            kg.opened.read(),
            collection_iri("explainability"),
            find_audit("shapes"),
            [answer.session],
        )
        assert shapes.passed
        assert kg.verify(answer.session, lexical=True).judge == "lexical-support"


def test_a_reader_that_does_not_judge_support_leaves_it_to_the_words(folder):
    with opened(
        folder, {"synthesise_answer": saying("Polonium was found by Curie in 1898.")}
    ) as kg:
        answer = kg.ask(QUESTION, history=[])
    with read_by(folder, support=False) as kg:
        assert kg.verify(answer.session).judge == "lexical-support"
