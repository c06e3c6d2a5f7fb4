"""Quotes of Markdown read the same wherever a person sees an answer."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console, RenderableType

from tests.support.corpora import made
from tgraph.errors import ErasedTextError
from tgraph.explain.render.answer import answer_block
from tgraph.explain.render.text_trees import source_tree, trace_tree
from tgraph.explain.render.wording import stage_lines

TEXT = """# Fram

[Colin Archer](/people/archer "He") built the *Fram* at `Larvik`. She **sailed to the
[ice](/ice). She was** strong.

## Starting the pump

The bilge pump is started by this:

```python
# keep __all__ *lines*
for pump in bilge:
    open "`valve`"
```

| Pump | Weight |
|---|---|
| *bilge* | 40 kg |
"""
CODE = """# keep __all__ *lines*
for pump in bilge:
    open "`valve`\""""
QUOTE = '[Colin Archer](/people/archer "He") built the *Fram* at `Larvik`.'
READ = "Colin Archer built the Fram at Larvik."


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory):
    with made(tmp_path_factory.mktemp("marks"), {"fram.md": TEXT}) as (kg, _):
        yield kg


@pytest.fixture(scope="module")
def answer(graph):
    return graph.ask("Who built the Fram?", history=())


@pytest.fixture(scope="module")
def coded(graph):
    return graph.ask("How is the bilge pump started, by which valve?", "basic", history=())


def printed(*parts: RenderableType) -> str:
    console = Console(width=200, file=StringIO(), markup=False, highlight=False)
    with console.capture() as shown:
        for part in parts:
            console.print(part)
    return shown.get()


def test_the_quote_is_exact_and_whole(answer):
    cited = answer.sentences[0].citations[0]
    assert cited.quote == TEXT[cited.start : cited.end] == QUOTE


def test_what_is_quoted_of_a_sentence_has_both_ends_of_its_marks(graph):
    query = (
        "PREFIX tg: <https://trustgraph.ai/ns/>"
        " SELECT DISTINCT ?quote WHERE { GRAPH ?g { ?evidence tg:quote ?quote } }"
    )
    quotes = [row["quote"].value for row in graph.sparql(query)]
    assert QUOTE in quotes
    for quote in quotes:
        assert quote in TEXT
        assert quote.count("**") % 2 == 0
        assert quote.count("[") == quote.count("](") == quote.count(")")


def test_the_terminal_the_trace_and_the_source_read_it(graph, answer):
    trace = graph.trace(answer.session)
    for shown in (
        printed(*answer_block(answer)),
        printed(trace_tree(trace)),
        printed(source_tree(graph.documents.read_extractions("fram.md"))),
    ):
        assert f"“{READ}”" in shown
        assert QUOTE not in shown
    assert f"1. {READ}" in printed(trace_tree(trace))
    assert "1. Colin…" in printed(trace_tree(trace, most=6))


def test_a_notebook_shows_what_the_terminal_shows(graph, answer):
    path = answer.sentences[0].citations[0].path
    for value in (answer, graph.trace(answer.session)):
        sure = replace(value, short="Colin <b>", short_confidence=0.734)
        html = sure._repr_html_()
        before, _, after = html.partition("<details")
        shown = " ".join(re.sub(r"<[^>]*>", " ", before).split())
        assert f"Colin &lt;b&gt; probability 0.73 that this is right Fram {path} [1] “" in shown
        assert "<u>Colin Archer</u> built the <i>Fram</i> at <code>Larvik</code>.”" in before
        assert QUOTE.partition(" ")[0] in after


def test_code_has_its_lines_and_its_characters_wherever_it_is_shown(graph, coded):
    sentence = next(s for s in coded.sentences if s.citations[0].segment_kind == "code")
    assert sentence.text == sentence.citations[0].quote == CODE
    assert f"\n\n{CODE}" in f"\n\n{coded.text}"
    trace = graph.trace(coded.session)
    assert coded.text == trace.answer
    for shown in (
        printed(*answer_block(coded)),
        printed(trace_tree(trace)),
        printed(source_tree(graph.documents.read_extractions("fram.md"))),
    ):
        assert "“# keep" not in shown
        lines = [line.strip("│├└─ ") for line in shown.split("\n")]
        at = next(n for n, line in enumerate(lines) if line.endswith("# keep __all__ *lines*"))
        assert lines[at + 1] == "for pump in bilge:"
        assert lines[at + 2].startswith('open "`valve`"')
    block = CODE.replace('"', "&#34;")
    for html in (graph.trace(coded.session).report(), coded._repr_html_()):
        assert re.search(rf"<code style=[^>]*>{re.escape(block)}</code>", html)


def test_a_quote_whose_page_is_not_kept_is_of_no_kind(graph, coded, monkeypatch):
    monkeypatch.setattr("tgraph.index.sources.Texts.of_page", lost)
    (place, *_) = (c for s in graph.trace(coded.session).sentences for c in s.citations)
    assert place.segment_kind is None


def lost(*_: object) -> str:
    raise ErasedTextError("It is gone.")


def test_the_stages_of_a_question_and_what_comes_nearest_have_no_mark_up(graph, answer):
    uuid = answer.session.rpartition(":")[2]
    stage = f"urn:trustgraph:prov:selection:{uuid}"
    lines = list(stage_lines(graph.trace(answer.session), stage))
    assert f"       “{READ}”" in lines
    assert not any("](" in line for line in lines)
    refused = graph.ask("Which king paid for the Fram of Larvik in gold?", history=())
    assert refused.no_evidence
    assert any(READ in note.text for note in refused.notes)
    assert not any("](" in note.text for note in refused.notes)
