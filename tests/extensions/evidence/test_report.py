"""The report of a session: self-contained, harmless whatever it shows, and the record itself."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, parse

from tests.support.corpora import made
from tgraph import vocabulary as v
from tgraph.errors import UsageError
from tgraph.explain.render.markup import parse_runs
from tgraph.explain.render.shown_session import MOST_QUOTED, _ends, _find_context_range
from tgraph.explain.render.templates import style_run as styled_run
from tgraph.explain.render.wording import relation_text
from tgraph.extensions.evidence.report import in_script
from tgraph.extensions.lab import measure_influence
from tgraph.rendering import UNSAFE, escape_controls
from tgraph.retrieve.modes.registry import MODES
from tgraph.store.statements import to_bytes

EVIL = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> {{ 7*7 }} \x1b[31m"
TEXT = f"Marie Curie discovered Polonium in Paris. Pierre Curie met Marie Curie in Paris {EVIL}.\n"
QUESTION = f"What did Marie Curie discover? {EVIL}"


class Reader(HTMLParser):
    """What a browser would see: elements with their attributes, scripts, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.words.append(data)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("report")
    with made(folder, {"curie.md": TEXT}) as (kg, _):
        yield kg


@pytest.fixture(scope="module")
def edge(graph):
    trace = graph.trace(graph.ask(QUESTION, history=[]).session)
    return next(item for item in trace.selected if item.kind == "edge")


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader


@pytest.mark.slow
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "bypass"])
def test_a_report_shows_the_answer_and_carries_the_record(graph, mode):
    answer = graph.ask(QUESTION, mode, history=[])
    seen = read(graph.export(answer.session, "html").decode())
    words = " ".join("".join(seen.words).split())
    for sentence in answer.sentences:
        assert escape_controls(" ".join(sentence.text.split())) in words
    record, program = seen.scripts
    carried = set(parse(record.encode(), RdfFormat.TRIG))
    whole = set(parse(graph.export(answer.session, "trig"), RdfFormat.TRIG))
    assert carried <= whole
    assert {q for q in whole - carried if q.graph_name != v.SOURCE_GRAPH} == set()
    assert "alert" not in program
    shown = graph.export(answer.session, "svg").decode()
    for sentence in answer.sentences:
        assert sentence.citations
        assert all(c.chunk in shown and c.edge_selection in shown for c in sentence.citations)
        for citation in sentence.citations:
            assert NamedNode(citation.document) in behind(citation.edge_selection, carried)


def behind(start, quads):
    """What a thing leads to by derivation."""
    found, queue = set(), [NamedNode(start)]
    while queue:
        node = queue.pop()
        if node not in found:
            found.add(node)
            derived = v.prov("wasDerivedFrom")
            queue += [q.object for q in quads if q.subject == node and q.predicate == derived]
    return found


def test_a_report_loads_nothing_and_runs_nothing_of_others(graph):
    graph.ask(QUESTION, history=[])
    text = graph.export(format="html").decode()
    seen = read(text)
    assert [tag for tag, _ in seen.elements].count("script") == 2
    assert not [tag for tag, _ in seen.elements if tag in ("img", "link", "iframe", "object")]
    for _, attributes in seen.elements:
        assert not {name for name in attributes if name.startswith("on") or name == "src"}
        assert (attributes.get("href") or "#").startswith("#")
    assert "49" not in "".join(seen.words).partition("{{")[0][-4:]
    assert "default-src 'none'" in text
    assert not UNSAFE.search(text)


def test_a_report_tells_at_a_glance_what_was_verified_and_what_matters(graph):
    answer = graph.ask(QUESTION, history=[])
    before = read(graph.export(answer.session, "html").decode())
    graph.verify(answer.session)
    found = measure_influence(graph, answer.session)
    after = read(graph.export(answer.session, "html").decode())
    words = [" ".join("".join(seen.words).split()) for seen in (before, after)]
    count = len(answer.sentences)
    assert all(f"Cited{count} of {count}" in text for text in words)
    assert [f"Quoted{count} of {count}" in text for text in words] == [False, True]
    assert ["influence of their own" in text for text in words] == [False, True]
    assert f"Depends on{len(found.ranked_items)}of " in words[1]
    targets = {a.get("id") for _, a in after.elements} - {None}
    links = [a["href"] for tag, a in after.elements if tag == "a"]
    assert links
    assert {link.removeprefix("#") for link in links if link} <= targets


def test_a_long_quote_is_folded_and_whole():
    for length in (0, 1, MOST_QUOTED, MOST_QUOTED + 1, 9 * MOST_QUOTED):
        quote = "".join(chr(0x4E00 + n % 999) for n in range(length))
        shown, folded, ends = _ends(quote, MOST_QUOTED, MOST_QUOTED * 3 // 4)
        assert shown + folded + ends == quote
        assert len(shown) + len(ends) <= MOST_QUOTED


def test_a_trace_writes_its_report(graph, tmp_path):
    graph.ask(QUESTION, history=[])
    trace = graph.trace()
    trace.to_html(tmp_path / "answer.html")
    assert (tmp_path / "answer.html").read_text("utf-8").startswith("<!doctype html>")
    with pytest.raises(UsageError, match="not read from a graph"):
        type(trace)(**{**trace.as_dict(), "report": None}).to_html(tmp_path / "no.html")


@given(st.text(max_size=60))
def test_no_literal_ends_the_element_that_carries_it(text):
    quad = Quad(NamedNode("urn:s"), NamedNode("urn:p"), Literal(f"{text}</script><!--{text}"))
    carried = in_script(to_bytes([quad], RdfFormat.TRIG).decode())
    assert "</" not in carried
    assert "<!" not in carried
    assert not UNSAFE.search(carried)
    assert list(parse(carried, RdfFormat.TRIG)) == [quad]


def test_a_report_begins_with_question_answer_and_evidence(graph):
    answer = graph.ask(QUESTION, history=[])
    text = graph.export(answer.session, "html").decode()
    places = [text.index(f'id="{name}"') for name in ("answer", "evidence", "selected", "steps")]
    assert places == sorted(places)
    below = [text.index(f'id="{name}"') for name in ("picture", "session")]
    assert min(below) > places[-1]
    assert places[1] < text.index('id="way"') < places[2]
    way = "".join(read(text[text.index('id="way"') : places[2]]).words)
    for said in (
        "Concepts of the question: ",
        "Entities matched to the question: ",
        "from 1 document",
    ):
        assert said in way
    assert not re.search(r"urn:|embedded-", "".join(read(text[: places[-1]]).words))
    head = "".join(read(text[: places[1]]).words)
    assert answer.session not in head
    assert answer.model not in head
    assert answer.sentences[0].text.split()[0] in head


def test_what_is_quoted_has_its_mark_up_read_and_nothing_of_it_runs():
    styled = {
        str(styled_run(run)) for run in parse_runs(f"*Ada* **`x`** [l](http://x) {EVIL}", "a.md")
    }
    assert {"<i>Ada</i>", "<b><code>x</code></b>", "<u>l</u>"} <= styled
    assert not any("<script" in run or "<img" in run for run in styled)


@given(
    st.lists(
        st.sampled_from([*"ab *_`[]()|\\~\n&!", "<b>", "<script>", "<!--", "<img src=x ", "&lt;"])
    )
    .map("".join)
    .filter(str.strip),
    st.sampled_from([None, "prose", "row", "code"]),
)
def test_no_quoted_text_becomes_an_element(text, kind):
    runs = parse_runs(text, "a.md", kind)
    seen = read("".join(str(styled_run(run)) for run in runs))
    assert {name for name, _ in seen.elements} <= {"b", "i", "s", "u", "code", "br"}
    assert {name for _, attributes in seen.elements for name in attributes} <= {"style"}
    assert "".join(seen.words) == "".join(run.display_text for run in runs if run.text != "\n")


@given(st.text(max_size=700), st.integers(0, 700), st.integers(0, 700))
def test_context_is_cut_between_words(text, one, other):
    start, end = sorted((min(one, len(text)), min(other, len(text))))
    begun, done = _find_context_range(text, start, end)
    assert 0 <= begun <= start <= end <= done <= len(text)


@pytest.mark.parametrize(
    ("label", "quote", "shown"),
    [
        ("buy Aurora from", "Shackleton bought the Aurora.", "buys Aurora from"),
        ("carry mail", "She carried mail.", "carries mail"),
        ("use", "He used it.", "uses"),
        ("reach", "Reaching the Pole.", "reaches"),
        ("stop at", "They stopped at Ross.", "stops at"),
        ("be to land on", "He was to land on it.", "is to land on"),
        ("builder", "The builders built it.", "builder"),
        ("built at", "It was built.", "built at"),
        ("would drift with", "It drifted.", "would drift with"),
        ("leader", "", "leader"),
    ],
)
def test_a_verb_is_not_left_in_the_infinitive(edge, label, quote, shown):
    place = replace(edge.evidence[0], quote=quote)
    assert relation_text(replace(edge, predicate_label=label, evidence=(place,))) == shown
