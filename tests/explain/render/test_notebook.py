"""Values in a notebook: safe HTML, whatever documents, models and people wrote."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tgraph
from tgraph.engine.components import Components
from tgraph.explain.audit.named_audits import AuditResult, find_audit
from tgraph.explain.integrity.entries import Problem, Signatures
from tgraph.explain.integrity.erasures import Erasure
from tgraph.explain.render.templates import ROWS, load_template, render_notebook
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\u202e\"'&"
TEXT = "Marie Curie <b onmouseover=x()>discovered</b> Polonium in Paris.\x1b[2J \u202eevil.\n"
TAGS = {
    *("div", "p", "sup", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"),
    *("blockquote", "strong"),
}


def text(said: str) -> str:
    """The text as a template prints it."""
    macros: Any = load_template("notebook.html").module
    return str(macros.paragraph(said)).partition('dir="auto">')[2].removesuffix("</p>\n")


class Seen(HTMLParser):
    """The tags, attributes and text of HTML; that tags are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.said = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names.update(name for name, _ in attrs)
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data


def checked(value: object) -> str:
    """The text of a value's HTML, which is harmless."""
    html = value._repr_html_()  # type: ignore[attr-defined]
    seen = Seen(html)
    assert seen.tags <= TAGS
    assert seen.names <= {"style", "dir"}
    assert "://" not in html
    assert "url(" not in html
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", html)
    return seen.said


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "evil.txt").write_text(TEXT)
    parts = Components(
        load_settings(None), folder / "c", chat=ScriptedModel(), embedder=HashingEmbedder()
    )
    with tgraph.open(folder / "g", create=True, parts=parts) as kg:
        kg.index([Path(folder / "evil.txt")])
        yield kg


def test_answers_and_what_is_said_of_them_are_shown_harmless(graph):
    question = f"What did Marie Curie discover? {EVIL}"
    answer = graph.ask(question, history=[])
    said = checked(answer)
    assert "<script>alert(1)</script>" in said
    assert answer.session in said
    assert "\\x1b[31m\\u202e" in said
    for sentence in answer.sentences:
        assert text(sentence.text) in answer._repr_html_()
    verification = graph.verify(answer.session, lexical=True)
    assert all(s.verdict in checked(verification) for s in verification.sentences)
    trace = checked(graph.trace(answer.session))
    assert "evil.txt" in trace
    assert "calls" in trace
    for expected in ("Polonium", EVIL):
        found = graph.why_not(answer.session, expected)
        assert found.cause in checked(found)
    for name in ("sessions", "uncited", "prov-ordering"):
        assert name in checked(graph.audit(name))
    assert "The check holds." in checked(graph.audit("prov-ordering"))
    assert str(answer) == answer.text


def test_a_list_of_sessions_is_shown_harmless(graph):
    graph.ask(f"Who was Pierre? {EVIL}", history=[])
    graph.ask("Who was Marie Curie?", history=[])
    sessions = graph.sessions.summaries()
    said = checked(sessions)
    assert "<script>alert(1)</script>" in said
    assert all(s.explain_id in said and s.status in said for s in sessions)
    assert f"{len(sessions)} sessions" in said
    assert "1 session" in checked(sessions[:1])
    assert "0 sessions" in checked(graph.sessions.summaries(0))
    assert isinstance(sessions, list)
    assert sessions[0] == graph.sessions.find("last")
    assert sessions[0].question not in checked(sessions[1:])


@pytest.mark.slow
def test_every_value_that_a_notebook_shows_has_a_macro_of_its_name():
    shown = {
        node.name
        for path in Path(tgraph.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
        and any(isinstance(one, ast.FunctionDef) and one.name == "_repr_html_" for one in node.body)
    }
    assert len(shown) == 8
    assert all(hasattr(load_template("notebook.html").module, name) for name in shown)
    with pytest.raises(TypeError, match="can't show a object"):
        render_notebook(object())


def test_an_answer_without_sentences_says_what_it_says(graph):
    answer = graph.ask("zzz qqq", history=[])
    assert answer.no_evidence
    assert answer.text in checked(answer)


def test_the_check_of_the_record_is_shown_harmless(graph):
    found = graph.integrity()
    said = checked(found)
    assert found.ok
    assert "The record is intact." in said
    assert found.head in said
    assert f"after entry {found.sequence}" in said
    problem = Problem("altered", EVIL, EVIL, EVIL)
    signed = Signatures(EVIL, 1, 1, 0, (), ())
    erased = Erasure("urn:e", EVIL, EVIL, "2026-01-01T00:00:00Z", 1, 2, 3)
    spoilt = replace(
        found,
        ok=False,
        problems=(problem,) * (ROWS + 2),
        unreferenced=(EVIL, "a" * 64),
        erased=(erased,),
        signatures=signed,
        saved_at=3,
    )
    said = checked(spoilt)
    assert f"differs from the sealed record: {ROWS + 2} problems." in said
    assert "and 2 more rows" in said
    assert "The saved head belongs to entry 3." in said
    assert "1 valid signature, 1 of" in said
    assert "2 texts that nothing on record needs" in said
    assert said.count("<script>alert(1)</script>") == 3 * ROWS + 4


def test_what_rests_on_a_document_is_shown_harmless(graph):
    answer = graph.ask(f"What did Marie Curie discover in Paris? {EVIL}", history=[])
    found = graph.impact("evil.txt")
    said = checked(found)
    assert found.facts
    assert all(fact.edge in said for fact in found.facts)
    assert answer.session in said
    assert f"{len(found.facts)} fact" in said
    assert "nothing else" in said
    assert "not part of the knowledge" not in said
    (first, *_) = found.answers
    fallen = replace(
        found,
        title=EVIL,
        standing=False,
        facts=(),
        answers=(replace(first, question=EVIL, sentences=(), questioned="2026-01-01"),),
    )
    said = checked(fallen)
    assert "<script>alert(1)</script>" in said
    assert "selected, not cited" in said
    assert "not part of the knowledge any more" in said
    assert "1 answer" in said
    assert "0 answers" in checked(replace(fallen, answers=()))


def test_a_long_result_is_cut_and_counted():
    audit = find_audit("sessions")
    rows = tuple((EVIL * 50,) * len(audit.columns) for _ in range(ROWS + 7))
    result = AuditResult(audit, rows)
    said = checked(result)
    assert "and 7 more rows" in said
    assert len(result._repr_html_()) < 1_000_000
    assert "The check" not in said
    assert "The check fails." in checked(AuditResult(audit, rows, False))


@given(st.text())
def test_no_text_becomes_markup(said):
    audit = replace(find_audit("sessions"), columns=(said,))
    seen = Seen(render_notebook(AuditResult(audit, ((said,),))))
    assert seen.tags == {"div", "table", "thead", "tbody", "tr", "th", "td"}
    visible = text(said)
    assert not set("<>\"'\x1b") & set(visible)
    assert Seen(f"<p>{visible}</p>").tags == {"p"}
