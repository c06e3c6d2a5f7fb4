"""Readers: spans within sentences, in code points, from networks that are real ONNX files."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.small_reader import NONE, small_cross_encoder, small_reader
from tgraph.errors import ModelError
from tgraph.model import Agent
from tgraph.models.base import Call
from tgraph.models.reader import OnnxReader, Passage
from tgraph.models.recorded_calls import RecordedCalls, ReplayedReader, UnrecordedError

TEXT = "It was built in Norway . In 1892 it sailed 🐧 ."
SENTENCES = ((0, 24), (25, len(TEXT)))


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    scores = {NONE: 1.0, "Norway": 6.0, "In": 2.0, "1892": 4.0}
    return OnnxReader.of_folder(small_reader(tmp_path_factory.mktemp("reader"), scores))


def test_each_sentence_has_its_likeliest_span(reader):
    [found] = reader.read("Where ?", [Passage(TEXT, SENTENCES)])
    first, second = found.spans
    assert (TEXT[first.start : first.end], first.score) == ("Norway", 10.0)
    assert (TEXT[second.start : second.end], second.score) == ("1892", 6.0)


def test_without_a_second_head_the_best_span_tells_how_relevant_a_passage_is(reader):
    [found] = reader.read("Where ?", [Passage(TEXT, SENTENCES)])
    assert found.relevance == 10.0


def test_a_second_head_tells_how_relevant_a_passage_is(tmp_path):
    reader = OnnxReader.of_folder(small_reader(tmp_path, {"Norway": 1.0}, relevance=-2.5))
    [found] = reader.read("Where ?", [Passage(TEXT, SENTENCES)])
    assert found.relevance == -2.5


def test_what_is_beyond_the_tokens_that_are_read_has_no_span(reader):
    text = "word " * 400 + "Norway ."
    [found] = reader.read("Where ?", [Passage(text, ((0, 5), (2000, len(text))))])
    assert found.spans[0] is not None
    assert found.spans[1] is None


def test_of_a_long_question_the_end_is_read(reader):
    calls: list[Call] = []
    question = f"{'Consider this too . ' * 200}Where ?"
    [found] = reader.read(question, [Passage(TEXT, SENTENCES)], calls.append)
    assert found.spans[0].score == 10.0
    assert 0 < calls[0].usage.input_tokens <= 320


@settings(max_examples=examples(40), deadline=None)
@given(st.text(max_size=80), st.text(max_size=20))
def test_spans_lie_within_their_sentences(reader, text, question):
    cut = len(text) // 2
    passage = Passage(text, ((0, cut), (cut, len(text))))
    [found] = reader.read(question, [passage])
    for (start, end), span in zip(passage.sentences, found.spans, strict=True):
        assert span is None or start <= span.start < span.end <= end


def test_a_reading_is_recorded_and_given_again(reader):
    calls: list[Call] = []
    passages = [Passage(TEXT, SENTENCES), Passage("Norway", ((0, 6),))]
    found = reader.read("Where ?", passages, calls.append)
    [call] = calls
    assert (call.kind, call.agent, call.usage.calls) == ("reading", reader.agent, 1)
    assert call.usage.input_tokens > 10
    again = ReplayedReader(Agent("model", "small"), RecordedCalls(calls))
    assert again.read("Where ?", passages) == found
    with pytest.raises(UnrecordedError):
        again.read("Where ?", passages)


def test_no_passages_are_no_call(reader):
    calls: list[Call] = []
    assert reader.read("Where ?", [], calls.append) == []
    assert not calls


def test_another_network_is_another_agent(reader, tmp_path):
    other = OnnxReader.of_folder(small_reader(tmp_path, {"Norway": 1.0}))
    assert other.agent.version != reader.agent.version


def test_a_folder_without_a_reader_says_what_is_missing(tmp_path):
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        OnnxReader.of_folder(tmp_path)


@pytest.mark.parametrize("spoilt", ["model.onnx", "tokenizer.json"])
def test_a_spoilt_file_is_named(tmp_path, spoilt):
    folder = small_reader(tmp_path, {"Norway": 1.0})
    (folder / spoilt).write_text("spoilt")
    with pytest.raises(ModelError, match="reader"):
        OnnxReader.of_folder(folder).read("Where ?", [Passage("Norway", ((0, 6),))])


# --- what texts bear out ---


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    scores = {"built": 4.0, "sailed": -2.0}
    folder = tmp_path_factory.mktemp("judge")
    return OnnxReader.of_folder(small_reader(folder, scores, support=True))


def test_a_third_head_tells_what_a_text_bears_out(judge):
    assert judge.supports("It .", ["It was built .", "It sailed .", "Nothing"]) == [4.0, -2.0, -9.0]


def test_a_reader_without_that_head_says_so_whatever_the_texts(reader, judge):
    assert reader.supports("It .", ["It was built ."]) is None
    assert reader.supports("It .", []) is None
    assert judge.supports("It .", []) == []


def test_a_judgement_of_support_is_recorded_and_given_again(judge):
    calls: list[Call] = []
    texts = ["It was built .", "Nothing \ud800"]
    found = judge.supports("It .", texts, calls.append)
    [call] = calls
    assert (call.kind, call.agent, call.usage.calls) == ("support", judge.agent, 1)
    assert call.usage.input_tokens > 10
    again = ReplayedReader(judge.agent, RecordedCalls(calls))
    assert again.supports("It .", texts) == found
    with pytest.raises(UnrecordedError):
        again.supports("It .", texts)


def test_where_no_support_is_on_record_nobody_judged_it(reader):
    assert ReplayedReader(reader.agent, RecordedCalls([])).supports("It .", ["Norway"]) is None


# --- cross-encoders ---


def test_a_cross_encoder_scores_the_passage_and_each_of_its_sentences(tmp_path):
    reader = OnnxReader.of_folder(small_cross_encoder(tmp_path, {"Norway": 3.0, "1892": 1.0}))
    [found] = reader.read("Where ?", [Passage(TEXT, SENTENCES)])
    assert found.relevance == 3.0
    assert [span.score for span in found.spans if span] == [3.0, 1.0]


def test_a_cross_encoder_names_no_words(tmp_path):
    reader = OnnxReader.of_folder(small_cross_encoder(tmp_path, {"Norway": 3.0}))
    calls: list[Call] = []
    passages = [Passage(TEXT, SENTENCES)]
    found = reader.read("Where ?", passages, calls.append)
    assert [(s.start, s.end) for s in found[0].spans if s] == [(0, 0), (25, 25)]
    assert ReplayedReader(reader.agent, RecordedCalls(calls)).read("Where ?", passages) == found


def test_of_two_classes_the_second_counts_against_the_first(tmp_path):
    reader = OnnxReader.of_folder(small_cross_encoder(tmp_path, {"Norway": 3.0}, classes=2))
    [found] = reader.read("Where ?", [Passage(TEXT, SENTENCES)])
    assert found.relevance == 6.0 - 3.0


def test_of_more_classes_nobody_knows_which_is_relevance(tmp_path):
    reader = OnnxReader.of_folder(small_cross_encoder(tmp_path, {"Norway": 3.0}, classes=3))
    with pytest.raises(ModelError, match="3 classes"):
        reader.read("Where ?", [Passage(TEXT, SENTENCES)])
