"""Summaries: each sentence rests on descriptions that were really given, and the limit holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tgraph.errors import ModelError
from tgraph.extract.model.summariser import ModelSummariser
from tgraph.extract.summaries import DistinctSentences, JoinedDescriptions, count_words
from tgraph.models.base import ChatRequest
from tgraph.models.tokens import count_tokens
from tgraph.rendering import collapse_whitespace
from tgraph.testing import ScriptedModel
from tgraph.testing.script import parse_blocks

FRAM = ["A Norwegian ship.", "A ship built by Colin Archer.", "She sailed north. A Norwegian ship."]
DESCRIPTIONS = st.lists(
    st.lists(st.sampled_from("ice ship Fram sails north. 船, 北极。 1893! a".split()), max_size=12)  # noqa: SIM905
    .map(" ".join)
    .filter(str.strip),
    min_size=2,
    max_size=6,
    unique=True,
)


def listed(request: ChatRequest) -> dict[str, str]:
    """What was shown, by id."""
    rows = map(json.loads, parse_blocks(request.messages)["DESCRIPTIONS"].splitlines())
    return {row["id"]: row["text"] for row in rows}


def reply(*sentences: tuple[str, list[Any]]) -> str:
    return json.dumps({"sentences": [{"text": text, "ids": ids} for text, ids in sentences]})


def summarised(script: Any, descriptions: list[str] = FRAM, words: int = 500, tokens: int = 4000):
    model = ScriptedModel({"summarise_descriptions": script})
    summariser = ModelSummariser(model, words, tokens)
    return summariser.summarise("Fram", descriptions), model


# --- without a model ---


def test_it_picks_what_says_something_new():
    summary = DistinctSentences(500).summarise("Fram", FRAM)
    assert [(s.text, s.rests_on) for s in summary.sentences] == [
        ("A Norwegian ship.", (0, 2)),
        ("A ship built by Colin Archer.", (1,)),
        ("She sailed north.", (2,)),
    ]
    assert not summary.dropped
    repeated = DistinctSentences(500).summarise("Fram", ["The Fram.", "the  fram.", "Fram, the!"])
    assert len(repeated.sentences) == 1


@given(DESCRIPTIONS, st.integers(1, 12))
@pytest.mark.parametrize("way", [DistinctSentences, JoinedDescriptions])
def test_without_a_model_everything_is_quoted_and_within_the_limit(
    way: Callable[[int], Any], descriptions: list[str], most: int
):
    summary = way(most).summarise("Fram", descriptions)
    assert summary == way(most).summarise("Fram", descriptions)
    assert 0 < count_words(summary.text) <= most
    for sentence in summary.sentences:
        assert sentence.rests_on
        for at in sentence.rests_on:
            said = collapse_whitespace(descriptions[at]).casefold()
            assert sentence.text.removesuffix("…").casefold() in said


def test_the_longest_coverage_that_fits_is_chosen_and_the_rest_counted():
    summary = DistinctSentences(5).summarise("Fram", ["One two three four.", "Five six seven."])
    assert summary.text == "One two three four."
    assert sum(summary.dropped.values()) == 1


# --- with a model ---


def test_a_sentence_says_which_descriptions_it_rests_on():
    said = reply(("A Norwegian ship built by Colin Archer.", [1, "2"]), ("She sailed.", ["3", "3"]))
    summary, model = summarised(said)
    assert [s.rests_on for s in summary.sentences] == [(0, 1), (2,)]
    assert summary.text == "A Norwegian ship built by Colin Archer. She sailed."
    assert not summary.dropped
    assert listed(model.requests[0]) == dict(zip("123", FRAM, strict=True))


def test_ids_that_were_not_shown_and_sentences_without_any_are_dropped_and_counted():
    said = reply(
        ("A ship.", ["2", "9", "x"]), ("Made of gold.", ["7"]), ("Or not.", []), ("", ["1"])
    )
    summary, _ = summarised(said)
    assert [(s.text, s.rests_on) for s in summary.sentences] == [("A ship.", (1,))]
    assert summary.dropped == {
        "unknown id in a summary": 3,
        "sentence of a summary without its source": 3,
    }


@pytest.mark.parametrize("said", ["I can't.", reply(), reply(("Gold.", ["7"])), '{"sentences": 1}'])
def test_a_reply_that_can_t_be_used_says_so(said: str):
    with pytest.raises(ModelError):
        summarised(said)


def test_the_limit_of_words_is_kept():
    said = reply(("One two three.", ["1"]), ("Four five.", ["2"]), ("Six.", ["3"]))
    summary, _ = summarised(said, words=4)
    assert summary.text == "One two three."
    assert summary.dropped == {"sentence over the limit of a summary": 2}
    summary, _ = summarised(said, words=2)
    assert summary.text == "One two…"


def halves(seen: list[dict[str, str]], budget: int) -> Callable[[ChatRequest], str]:
    """A model that says two sentences of whatever it is shown, which ``seen`` gets."""

    def fold(request: ChatRequest) -> str:
        assert sum(count_tokens(m["content"]) for m in request.messages) <= budget
        seen.append(listed(request))
        ids = list(seen[-1])
        first = min(seen[-1].values())
        return reply(*((f"Half {n} from {first[:20]}.", ids[n::2]) for n in (0, 1)))

    return fold


def facts(count: int) -> list[str]:
    return [f"Fact {number:04} of the Fram is told in these words." for number in range(count)]


def test_what_does_not_fit_is_summarised_in_runs_and_still_traces():
    """Every prompt keeps to its budget; in the end each sentence leads to what was first said."""
    seen: list[dict[str, str]] = []
    summary, model = summarised(halves(seen, 1000), facts(300), tokens=1000)
    assert model.count("summarise_descriptions") == len(seen)
    assert 10 < len(seen) < 60
    shown = [text for each in seen for text in each.values() if not text.startswith("Half")]
    assert shown == facts(300)
    assert all(text.startswith("Half") for text in seen[-1].values())
    rests_on = [set(sentence.rests_on) for sentence in summary.sentences]
    assert rests_on[0] | rests_on[1] == set(range(300))
    assert not rests_on[0] & rests_on[1]
    assert not summary.dropped


@settings(max_examples=examples(15))
@given(st.integers(0, 300))
def test_one_description_more_alters_few_prompts(place):
    before: list[dict[str, str]] = []
    after: list[dict[str, str]] = []
    known = facts(300)
    summarised(halves(before, 1000), known, tokens=1000)
    more = sorted([*known, f"Fact {place:04} was told before as well."])
    summarised(halves(after, 1000), more, tokens=1000)
    new = [shown for shown in after if shown not in before]
    assert 1 <= len(new) <= 8
    assert len(after) > 20


def test_one_description_that_is_too_long_alone_is_cut_and_counted():
    long = ["The Fram drifted. " * 2000, "A ship."]
    summary, model = summarised(
        lambda request: reply(("A ship drifted.", list(listed(request)))), long, tokens=1000
    )
    assert len(model.requests) == 2
    for request in model.requests:
        assert sum(count_tokens(m["content"]) for m in request.messages) <= 1000
    assert summary.sentences[0].rests_on == (0, 1)
    assert summary.dropped == {"description cut for its summary": 1}


def test_another_limit_model_or_prompt_is_another_summary(tmp_path):
    (tmp_path / "summarise_descriptions.md").write_text("=== system\nBe brief.\n=== user\nGo.")
    one, other = ScriptedModel(), ScriptedModel(name="other")
    keys = [
        ModelSummariser(one, 500, 4000).key,
        ModelSummariser(one, 400, 4000).key,
        ModelSummariser(one, 500, 3000).key,
        ModelSummariser(other, 500, 4000).key,
        ModelSummariser(one, 500, 4000, tmp_path).key,
        DistinctSentences(500).key,
        JoinedDescriptions(500).key,
    ]
    assert len(set(keys)) == len(keys)
