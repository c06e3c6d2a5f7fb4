"""Knowledge derived anew from the record, and compared with what stands.

It is done by the code of an index run, on a private copy of which nothing is kept: knowledge and
the merges are taken out, everything that the record holds is touched, and what comes of it is
compared with what was there. Documents are not read again, and no model is asked: what it once
wrote of the same is on record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from itertools import islice
from typing import Any

from pyoxigraph import NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.engine.change.update import compare_stores
from tgraph.engine.components import Components
from tgraph.engine.index.chunk_context import update_contexts
from tgraph.engine.index.community_reports import cluster_entities, write_reports
from tgraph.engine.index.derivation import derive_knowledge, summarise_descriptions, update_prefaces
from tgraph.engine.index.embeddings import load_previous_vectors
from tgraph.engine.index.phase import IndexContext
from tgraph.engine.index.raptor_tree import grow_tree
from tgraph.engine.index.run import BUSY, Run
from tgraph.engine.open_collection import OpenCollection
from tgraph.errors import ModelError, UsageError
from tgraph.explain.audit.named_audits import KNOWLEDGE, AuditResult
from tgraph.explain.trace.recorded_session import agent_on_record
from tgraph.index.chunk_contexts import standing_contexts
from tgraph.index.reports.report import read_reports
from tgraph.index.sources import text_value
from tgraph.index.summary_tree import standing_tree
from tgraph.index.touched import Touched, touch_everything
from tgraph.index.vectors.items import items_of
from tgraph.model import Agent
from tgraph.models.base import CallSink, ChatReply, ChatRequest, no_sink
from tgraph.record.merges import standing_merges
from tgraph.record.recorder import RunRecord
from tgraph.store.base import Store
from tgraph.store.oxigraph import OxigraphStore

_AT_ONCE = 100_000
DifferenceRow = tuple[str, str, str, str]


def audit_knowledge(opened: OpenCollection, *arguments: str) -> AuditResult:
    """Return the result of the knowledge audit."""
    if arguments:
        raise UsageError(f"The audit {KNOWLEDGE.name} takes no arguments.")
    opened.read()
    rows = tuple(Rederivation(opened.setup()).differences())
    return AuditResult(KNOWLEDGE, rows, not rows)


class Rederivation(Run):
    """An index run over all recorded evidence; its result is only compared."""

    kind = "rederivation"
    busy = BUSY

    def differences(self) -> list[DifferenceRow]:
        """Return differences between standing and derived knowledge: standing triples without
        derivation, and derived triples missing from the store."""
        with self._workshop() as context:
            context.copy.store.backup(context.copy.path / "standing")
            standing = OxigraphStore.snapshot(context.copy.path / "standing")
            _derive_anew(self._asking_nobody(context, standing), standing)
            added, missing = compare_stores(context.copy.store, standing, v.KNOWLEDGE_GRAPH)
            before = {Triple(*_merge_triple(*pair)) for pair in standing_merges(standing).items()}
            after = {
                Triple(*_merge_triple(*p)) for p in standing_merges(context.copy.store).items()
            }
            del standing
        extra = [*_quad_triples(added), *(before - after)]
        lacking = [*_quad_triples(missing), *(after - before)]
        rows = [_difference_row("does not follow", triple) for triple in extra]
        return sorted(
            [*rows, *(_difference_row("is missing", triple) for triple in lacking)],
            key=_row_sort_key,
        )

    def _asking_nobody(self, context: IndexContext, standing: Store) -> IndexContext:
        """Return a context without model access and without storage: recorded replies are
        reused, new content is discarded."""
        parts, agent = self._setup.parts, _report_model(standing)
        if agent is None and parts.chat is not None:
            agent = parts.chat.agent
        if agent is not None:
            cache, chat = context.copy.path / "cache", NobodyToAsk(agent)
            parts = Components(context.settings, cache, chat=chat, embedder=context.embedder)
        record = _Unkept(context.librarian, self.iri, context.uuid)
        return replace(context, parts=parts, record=record)


def _report_model(standing: Store) -> Agent | None:
    """Return the recorded model agent of standing reports; settings may name another model, or
    none."""
    for report in read_reports(standing).values():
        activity = text_value(standing, report.iri, v.prov("wasGeneratedBy"))
        agent = text_value(standing, activity, v.prov("wasAssociatedWith")) if activity else ""
        if agent and (agent_record := agent_on_record(standing, agent)).kind == "model":
            return agent_record
    return None


def _derive_anew(context: IndexContext, standing: Store) -> None:
    """Run all index phases after document reading, on recorded evidence."""
    copy, started = context.copy, context.clock()
    knowledge = iter(standing.match(None, None, None, v.KNOWLEDGE_GRAPH))
    while batch := list(islice(knowledge, _AT_ONCE)):
        copy.remove(batch)
    copy.remove(list(copy.store.match(None, v.RDF_TYPE, v.tg("Merge"), v.SOURCE_GRAPH)))
    _derive_all(context, started)
    cluster_entities(context)
    write_reports(context, read_reports(standing))
    update_prefaces(context)
    update_contexts(context, wanted=bool(standing_contexts(standing)))
    if context.settings.raptor.enabled or standing_tree(standing):
        _grow_tree_anew(context)


def _derive_all(context: IndexContext, started: datetime) -> None:
    touched = Touched()
    touch_everything(context.copy.store, touched)
    derived = derive_knowledge(context, touched, started)
    summarise_descriptions(context, derived.undescribed)


def _grow_tree_anew(context: IndexContext) -> None:
    """Grow the summary tree from chunk vectors, reusing published vectors where possible."""
    items = items_of("chunk", context.copy.store, context.librarian, context.evidence)
    previous_vectors = load_previous_vectors(context, "chunk")
    chunks = context.parts.vector_store.build_vectors(
        "chunk", items, context.embedder, previous_vectors, sink=context.record.call
    )
    grow_tree(context, chunks, load_previous_vectors(context, "summary"))


def _merge_triple(absorbed: str, canonical: str) -> tuple[NamedNode, NamedNode, NamedNode]:
    return NamedNode(absorbed), v.tg("canonical"), NamedNode(canonical)


def _quad_triples(quads: list[Quad]) -> Iterator[Triple]:
    return (quad.triple for quad in quads)


def _difference_row(problem: str, triple: Triple) -> DifferenceRow:
    subject, predicate, obj = map(_term_text, triple)
    return problem, subject, predicate, obj


def _term_text(term: Any) -> str:
    return term.value if isinstance(term, NamedNode) else str(term)


def _row_sort_key(row: DifferenceRow) -> tuple[str, ...]:
    return (*row[1:], row[0])


class _Unkept(RunRecord):
    """A run record that hashes content without storing it."""

    def keep_content(self, content: str | bytes) -> str:
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        return sha256(data).hexdigest()


class NobodyToAsk:
    """A placeholder ``ChatModel`` that raises ``ModelError`` for every reply not on record."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def complete(self, request: ChatRequest, sink: CallSink = no_sink) -> ChatReply:
        raise ModelError(f"What {self.agent.name} would say is not on record.")

    def stream(self, request: ChatRequest, sink: CallSink = no_sink) -> Iterator[str]:
        raise ModelError(f"What {self.agent.name} would say is not on record.")
