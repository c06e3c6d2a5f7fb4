"""Prints docs/reference/audits.md: every audit, its question, and what it finds in a small record.

The record is made here, by the same code as any other, of four short documents and a scripted
model, under a fixed clock; tests/explain/audit/test_named_audits.py asks it for what is known to be
in it. What such a record has nothing of is shown from a second, in which something is wrong on
purpose.
"""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

from pyoxigraph import Literal, NamedNode, Quad

import tgraph
from tgraph import vocabulary as v
from tgraph.engine.components import Components
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import ModelError
from tgraph.explain.audit.named_audits import Audit, AuditResult, list_audits
from tgraph.extensions.lab import evaluate, measure_influence
from tgraph.extensions.lab.evaluation.metrics import EvaluationItem
from tgraph.rendering import one_line
from tgraph.resources import read_text
from tgraph.settings import load_settings
from tgraph.store.folder import GraphFolder
from tgraph.store.oxigraph import OxigraphStore
from tgraph.testing import HashingEmbedder, ScriptedModel
from tgraph.testing.script import parse_blocks, plausible_reply

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
DOUBTS = {
    "dark.txt": "it was cold and dark all winter.\n",
    "gerlache.txt": "Roald Amundsen carried Adrien de Gerlache. Emil Racovitza saw the Belgica.\n",
    "denied.txt": "Roald Amundsen did not carry Adrien de Gerlache. Emil Racovitza met Lecointe.\n",
}
PLAN = '<p>it was late.</p><img src="plan.png" alt="The deck">'
VESSELS = """
@prefix : <https://example.org/vessels#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Ship a owl:Class ; rdfs:label "ship" .
:Thing a owl:Class ; rdfs:label "thing" .
:sees a owl:ObjectProperty ; rdfs:label "saw" ; rdfs:domain :Ship .
"""
ASKED = "Whom did Roald Amundsen carry?"
TRUTH = "Roald Amundsen carried Adrien de Gerlache."
REASON = "It was forged."

ROWS = 2
"""Rows shown of each audit."""
_SEAL = re.compile(r"\b[0-9a-f]{64}\b")
_ZEROS = "-0000-0000-0000-000000000000"
LONGEST = 60
"""Characters shown of a cell."""

HEAD = """# Audits

Made by `python docs/audits_reference.py > docs/reference/audits.md`; a test keeps it current. Each
audit is a SPARQL query in `sparql/audit/`, whose header says what stands here (`shapes`,
`integrity`, `knowledge` and part of `contradictions` are code). `tgraph audit NAME [ARG]...` runs
it, in Python `kg.audit(NAME, ...)` does. An audit that is a check ends with exit code 4 if it has
rows.

The example results are the first rows that each gives for a small record: four documents, six
questions, two verifications; then one document was retracted, one changed, and the model and a
prompt replaced. Long cells are cut, and identifiers shortened.

Where an audit finds nothing in it, the rows are of a second record, spoilt on purpose: documents
contradict each other, nothing can be extracted from one, the model writes a sentence from one fact
and cites another; an answer was evaluated, one analysed for influence, a document changed, and an
ontology added by which only ships see. Then
the store was altered behind tgraph's back: a session read knowledge newer than itself, ended a
second time in 1900, is an entity too, and retrieved from its own answer; a ship became a tractor.
"""


Opener = Callable[..., KnowledgeGraph]


def _opener(folder: Path, replies: Mapping[str, Any]) -> Opener:
    """Opens the graph in ``folder`` with a model of a name; clock and UUIDs go on counting."""
    moments, names = count(), count(1)

    def clock() -> datetime:
        return datetime(2026, 1, 1, 9, tzinfo=UTC) + timedelta(minutes=next(moments))

    def opened(model: str, **settings: str) -> KnowledgeGraph:
        values = {"person": "Ada", "reader.model": "none", **settings}
        parts = Components(
            load_settings(None, values),
            folder / "cache",
            chat=ScriptedModel(replies, name=model, clock=clock),
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

    return opened


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")


def example(folder: Path) -> KnowledgeGraph:
    """A graph in ``folder`` in which most audits find something; the caller closes it."""
    _write(folder, TEXTS)
    opened = _opener(folder, {"synthesise_answer": synthesise})
    with contextlib.chdir(folder):
        with opened("scripted-1") as graph:
            graph.index(list(TEXTS))
            for question in (BOTH, ONE, OLD):
                graph.ask(question, history=[])
            graph.ask(ALONE, "bypass", history=[])
            with contextlib.suppress(tgraph.TgraphError):
                graph.ask(BROKEN, history=[])
            graph.ask(NOTHING, history=[])
            answered = {
                session.question: session.explain_id for session in graph.sessions.summaries()
            }
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


def spoilt(folder: Path) -> KnowledgeGraph:
    """A graph in ``folder`` for audits that find nothing in the example; the caller closes it."""
    _write(folder, DOUBTS)
    opened = _opener(folder, {"synthesise_answer": miscite})
    with contextlib.chdir(folder):
        with opened("scripted-1") as graph:
            graph.index(list(DOUBTS))
            session = graph.ask(ASKED, history=[]).session
            measure_influence(graph, session)
            evaluate(graph, [EvaluationItem("1", ASKED, TRUTH)])
            (folder / "gerlache.txt").write_text(DOUBTS["gerlache.txt"] + "Lecointe met Cook.\n")
            graph.index(["gerlache.txt"])
            (folder / "vessels.ttl").write_text(VESSELS)
            graph.ontologies.add("vessels.ttl")
            (folder / "plan.html").write_text(PLAN)
            graph.index(["plan.html"])
        _spoil(folder / "graph", session.removeprefix(v.session_iri("")))
        return opened("scripted-1")


def miscite(request: Any) -> str:
    """What the model answers: what the first fact says, citing the second."""
    listed = parse_blocks(request.messages)["EVIDENCE"].splitlines()
    first, *others = plausible_reply("synthesise_answer", request.messages).splitlines()
    if len(listed) < 2:
        return first
    said = {**json.loads(first), "citations": [json.loads(listed[1])["id"]]}
    return "\n".join([json.dumps(said), *others[1:2]])


def _spoil(root: Path, uuid: str) -> None:
    """Change the session's quads, in the store and in the snapshot that readers see."""
    graph = NamedNode(v.bundle_iri(uuid))
    session = NamedNode(v.session_iri(uuid))
    retrieval, answer = NamedNode(v.retrieval_iri(uuid)), NamedNode(v.answer_iri(uuid))
    early = Literal("1900-01-01T00:00:00Z", datatype=v.xsd("dateTime"))
    added = [
        Quad(session, v.tg("generation"), Literal(2), graph),
        Quad(session, v.prov("endedAtTime"), early, graph),
        Quad(session, v.RDF_TYPE, v.prov("Entity"), graph),
        Quad(retrieval, v.prov("wasDerivedFrom"), answer, graph),
        Quad(NamedNode(v.entity_iri("Belgica")), v.tg("description"), Literal("a tractor")),
    ]
    collection = GraphFolder.open(root).collection("default", create=False)
    for kept in (collection.store, *collection.snapshots.glob("*/store")):
        store = OxigraphStore.open(kept)
        store.remove(list(store.match(session, v.tg("generation"), None, graph)))
        store.extend(added)
        store.flush()
        store.close()


def page(graph: KnowledgeGraph, wrong: KnowledgeGraph) -> str:
    """The page, with what the audits find in the graph, or else in the one that is wrong."""
    return "\n".join([HEAD, *_sections(graph, wrong)])


def _sections(graph: KnowledgeGraph, wrong: KnowledgeGraph) -> Iterator[str]:
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
        yield from _result(graph, wrong, audit)


def _result(graph: KnowledgeGraph, wrong: KnowledgeGraph, audit: Audit) -> Iterator[str]:
    given = {"document": "notes.txt", "edge": ""}
    if any(p.kind == "edge" for p in audit.parameters):
        given["edge"] = graph.audit("influential-edges", "1").rows[0][-1]
    arguments = [given[p.kind] for p in audit.parameters if p.default is None]
    shown = " ".join(["tgraph audit", audit.name, *map(_short, arguments)])
    found, where = graph.audit(audit.name, *arguments), ""
    if not found.rows:
        found, where = wrong.audit(audit.name, *arguments), ", in the spoilt record,"
        assert found.rows, f"{audit.name} has no example"
    number = len(found.rows)
    yield f"`{shown}`{where} gives {number} row{'s' if number > 1 else ''}:\n"
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
    return one_line(_SEAL.sub("…", cell), LONGEST)


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as other,
        example(Path(folder)) as graph,
        spoilt(Path(other)) as wrong,
    ):
        print(page(graph, wrong), end="")


if __name__ == "__main__":
    main()
