"""A question on the whole without a model: themes with their documents and a sentence each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.corpora import opened, write
from tgraph.record.session import SessionRecord
from tgraph.retrieve.reasons import THIRD_WORDING

NOTICE = "The Harbour Board of Vik gives notice that this page may change without warning."
SUBJECTS = {
    "Lighthouses": "lighthouse",
    "Ferries": "ferry",
    "Fisheries": "herring fleet",
    "Tides": "tide gauge",
}
TEXTS = {
    f"{title.lower()}.md": f"""# {title}

{NOTICE}

The {thing} of Vik was begun in 18{n}0 by Ada Kern. Also see the {thing} of Moss.

Olaf Brun, Ada Kern, Per Dahl, Kari Holm, Nils Moe and Liv Berg kept the {thing} of Vik.

You should ask Ada Kern about the {thing} before you go to Vik. The {thing} of Vik is open all year.
"""
    for n, (title, thing) in enumerate(SUBJECTS.items(), 4)
}
QUESTION = "What are these documents about?"
THEME = re.compile(r".+: \d+ of 4 documents(?:, above all “.+”)?")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("summary")
    with opened(root, create=True) as graph:
        assert not graph.index(write(root, TEXTS)).failed
    return root


def test_themes_are_told_with_their_documents_and_sentences_that_sum_up(home):
    with opened(home) as graph:
        answer = graph.ask(QUESTION, history=())
        assert answer.mode == "global"
        first, *blocks = answer.text.split("\n\n")
        assert re.match(r"Summary: 4 documents on \d themes?", first)
        heads = [block.split("\n")[0] for block in blocks]
        assert heads
        assert all(map(THEME.fullmatch, heads))
        counts = [int(count) for head in heads for count in re.findall(r"(\d+) of 4", head)]
        assert counts == sorted(counts, reverse=True)
        quotes = [line[2:] for block in blocks for line in block.split("\n")[1:]]
        assert all(quote.startswith("The ") for quote in quotes)
        assert NOTICE not in answer.text
        for sentence in answer.sentences:
            for cited in sentence.citations:
                assert Path(cited.path).read_text()[cited.start : cited.end] == cited.quote
        assert graph.replay(answer.session).is_same
        assert graph.verify(answer.session).is_supported


def test_a_summary_of_an_earlier_wording_replays_as_it_was(home, monkeypatch):
    with opened(home) as graph:
        with monkeypatch.context() as earlier:
            earlier.setattr(SessionRecord.__init__, "__defaults__", (THIRD_WORDING - 1,))
            earlier.setattr(graph.opened.context(), "wording", THIRD_WORDING - 1)
            answer = graph.ask(QUESTION, history=())
        assert not any(map(THEME.fullmatch, answer.text.split("\n")))
        assert graph.replay(answer.session).is_same
