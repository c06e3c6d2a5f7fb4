"""Prints docs/reference/audits.md: every audit, its question, and what it finds in a small record.

The record is made here, by the same code as any other, of three short documents and a scripted
model, under a fixed clock; tests/explain/test_audits.py asks it for what is known to be in it.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import tgraph
from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.parts import Parts
from tgraph.errors import ModelError
from tgraph.explain.audit import Audit, AuditResult, list_audits
from tgraph.explain.safety import one_line
from tgraph.resources import read_text
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel
from tgraph.testing.script import plausible_reply

TEXTS = {
    "curie.txt": "Marie Curie discovered Polonium in Paris. Pierre Curie taught Marie Curie.\n",
    "fram.txt": "The Fram carried Roald Amundsen to the Bay of Whales. The Fram lies in Oslo.\n",
    "notes.txt": "Marie Curie discovered Polonium. Henri Becquerel met Lord Kelvin.\n",
    "unread.txt": "Nobody asks about Emil Racovitza, who studied the Belgica.\n",
}
BOTH = "What did Marie Curie discover?"
ONE = "Whom did Henri Becquerel meet?"
OLD = "Who carried Roald Amundsen?"
ALONE = "Is it cold in Antarctica?"
BROKEN = "Where is the Fram?"
NOTHING = "What is the price of tea in Lima?"
FALSE = " in 1066"
REASON = "It was forged."

ROWS = 2
"""Rows shown of each audit."""
_ZEROS = "-0000-0000-0000-000000000000"
LONGEST = 60
"""Characters shown of a cell."""

HEAD = """# Audits

Made by `python docs/audits_reference.py > docs/reference/audits.md`; a test keeps it current. Each
audit is a SPARQL query in `sparql/audit/`, whose header says what stands here (`shapes`,
`integrity` and part of `contradictions` are code). `tgraph audit NAME [ARG]...` runs it, in Python
`kg.audit(NAME, ...)` does. An audit that is a check ends with exit code 4 if it has rows.

The example results are the first rows that each gives for a small record: four documents, six
questions, two verifications; then one document was retracted, one changed, and the model and a
prompt replaced. Long cells are cut, and identifiers shortened.
"""


def example(folder: Path) -> KnowledgeGraph:
    """A graph in ``folder`` in which most audits find something; the caller closes it."""
    moments, names = count(), count(1)

    def clock() -> datetime:
        return datetime(2026, 1, 1, 9, tzinfo=UTC) + timedelta(minutes=next(moments))

    for name, text in TEXTS.items():
        (folder / name).write_text(text, "utf-8")

    def opened(model: str, **settings: str) -> KnowledgeGraph:
        values = {"person": "Ada", **settings}
        parts = Parts(
            load_settings(None, values),
            folder / "cache",
            chat=ScriptedModel({"synthesise_answer": synthesise}, name=model, clock=clock),
            embedder=HashingEmbedder(clock=clock),
        )
        return tgraph.open(
            folder / "graph",
            create=True,
            parts=parts,
            settings=values,
            clock=clock,
            uuid=lambda: str(UUID(int=next(names) << 96)),
        )

    with contextlib.chdir(folder):
        with opened("scripted-1") as graph:
            graph.index(list(TEXTS))
            for question in (BOTH, ONE, OLD):
                graph.ask(question, history=[])
            graph.ask(ALONE, "bypass", history=[])
            with contextlib.suppress(tgraph.TgraphError):
                graph.ask(BROKEN, history=[])
            graph.ask(NOTHING, history=[])
            answered = {session.question: session.explain_id for session in graph.sessions()}
            graph.verify(answered[OLD], lexical=True)
            graph.verify(answered[BOTH], lexical=True)
            graph.retract("notes.txt", reason=REASON)
            (folder / "fram.txt").write_text(TEXTS["fram.txt"] + "It was built by Colin Archer.\n")
            graph.index(["fram.txt"])
        prompts = folder / "prompts"
        prompts.mkdir()
        changed = read_text("prompts", "synthesise_answer.md") + "\nBe brief.\n"
        (prompts / "synthesise_answer.md").write_text(changed, "utf-8")
        graph = opened("scripted-2", prompts=str(prompts))
        graph.ask(BOTH, history=[])
    return graph


def synthesise(request: Any) -> str:
    """What the model answers: something plausible, wrong about the Fram, and nothing at all where
    the question is about tea."""
    asked = str(request.messages)
    if BROKEN in asked:
        raise ModelError("The model gave up.")
    if NOTHING in asked:
        return '{"no_evidence": true}'
    reply = plausible_reply("synthesise_answer", request.messages)
    return reply.replace("Amundsen", "Amundsen" + FALSE) if OLD in asked else reply


def page(graph: KnowledgeGraph) -> str:
    """The page, with what the audits find in the graph."""
    return "\n".join([HEAD, *_sections(graph)])


def _sections(graph: KnowledgeGraph) -> Iterator[str]:
    group = ""
    for audit in list_audits():
        if audit.group != group:
            group = audit.group
            yield f"## {group}\n"
        yield f"### {audit.name}\n"
        yield f"{audit.title}. {audit.question[:1].upper()}{audit.question[1:]}\n"
        if audit.check:
            yield f"A check; what holds is: {audit.check}.\n"
        for parameter in audit.parameters:
            default = f", by default `{parameter.default}`" if parameter.default else ""
            yield f"- `{parameter.name.upper()}`: {parameter.description}{default}"
        if audit.parameters:
            yield ""
        yield from _result(graph, audit)


def _result(graph: KnowledgeGraph, audit: Audit) -> Iterator[str]:
    given = {"document": "notes.txt", "edge": ""}
    if any(p.kind == "edge" for p in audit.parameters):
        given["edge"] = graph.audit("influential-edges", "1").rows[0][-1]
    arguments = [given[p.kind] for p in audit.parameters if p.default is None]
    shown = " ".join(["tgraph audit", audit.name, *map(_short, arguments)])
    found = graph.audit(audit.name, *arguments)
    if not found.rows:
        yield f"`{shown}` finds nothing; the columns are {', '.join(audit.columns)}.\n"
        return
    number = len(found.rows)
    yield f"`{shown}` gives {number} row{'s' if number > 1 else ''}:\n"
    yield from _table(found)
    yield ""


def _table(found: AuditResult) -> Iterator[str]:
    yield f"| {' | '.join(found.audit.columns)} |"
    yield f"|{'---|' * len(found.audit.columns)}"
    for row in found.rows[:ROWS]:
        yield f"| {' | '.join(_short(cell).replace('|', '&#124;') for cell in row)} |"


def _short(cell: str) -> str:
    if cell.startswith("urn:trustgraph:") or (len(cell) in (40, 64) and cell.isalnum()):
        return one_line(cell.removeprefix("urn:trustgraph:").replace(_ZEROS, "…"), 30)
    return one_line(cell, LONGEST)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, example(Path(folder)) as graph:
        print(page(graph), end="")


if __name__ == "__main__":
    main()
