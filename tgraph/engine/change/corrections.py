"""What people correct: facts and entities are stated by hand, denied, edited and made one.

What somebody states becomes a note, a small document that is evidence of it; what somebody denies
is a decision that derivation honours. Each is a curation with its reason, and taken back by another
(``undo``), after which knowledge is as if it had not been made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.engine.change.curation_notes import EntityValues, NewFact, NoteWriter
from tgraph.engine.change.entity_curation import (
    CurationRun,
    check_reason,
    impact_of,
    question_answers,
)
from tgraph.engine.index.document_ingest import touch_document
from tgraph.engine.index.phase import IndexContext
from tgraph.engine.open_collection import OpenCollection
from tgraph.errors import UsageError
from tgraph.explain.audit.impact import answers_on
from tgraph.explain.trace.curations import find_curation, read_curations
from tgraph.explain.trace.facts import Facts, KnownFact
from tgraph.index.decisions import normalise_entity
from tgraph.index.sources import document_of_accession
from tgraph.index.standing_knowledge import StandingEvidence
from tgraph.index.touched import Touched
from tgraph.record.activities import Authorship, names_of, responsible_agents, state_invalidation
from tgraph.record.curations import (
    CurationNote,
    denial_quads,
    join_quads,
    note_quads,
    read_decisions,
    reified_triple,
)
from tgraph.store.base import Store
from tgraph.store.statements import Statements


@dataclass(frozen=True, slots=True)
class Correction:
    """The results of a correction.

    ``curation`` is the identifier for `tgraph curations undo`, ``said`` the stated or denied
    fact in words; ``new`` are names that were not in the graph before, and ``questioned`` the
    sessions whose answers were called into question."""

    curation: str
    said: str
    new: tuple[str, ...] = ()
    questioned: tuple[str, ...] = ()


@dataclass(slots=True)
class _Change:
    """A decision in preparation, with its reason.

    ``denied`` are edges leaving knowledge because of the denial ``ground``; ``notes`` are added
    or removed documents."""

    reason: str
    quads: list[Quad] = field(default_factory=list)
    touched: Touched = field(default_factory=Touched)
    said: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)
    ground: str = ""
    notes: list[str] = field(default_factory=list)


class CorrectionRun(CurationRun):
    """A single correction; methods raise ``UsageError`` for impossible changes, and then
    nothing changes."""

    def add_fact(self, wanted: NewFact, reason: str) -> _Change:
        """State a fact."""
        return self._run_correction(
            "Fact stated", reason, lambda c, done: self._add_fact(c, done, wanted)
        )

    def edit_fact(self, names: Sequence[str], wanted: NewFact, reason: str) -> _Change:
        """Replace a fact by another fact, or by other values of the same fact."""

        def edit(context: IndexContext, done: _Change) -> None:
            facts = Facts(context.copy.store)
            old = facts.find(names)
            writer = _note_writer(facts, context.copy.store)
            note = writer.fact(wanted, old)
            if any(fact.triple != facts.triple(old) for fact in note.facts):
                self._deny_fact(context, done, facts, old)
            self._add_note(context, done, writer, note)

        return self._run_correction("Fact edited", reason, edit)

    def deny_fact(self, names: Sequence[str], reason: str) -> _Change:
        """Deny a fact."""

        def deny(context: IndexContext, done: _Change) -> None:
            facts = Facts(context.copy.store)
            self._deny_fact(context, done, facts, facts.find(names))

        return self._run_correction("Fact denied", reason, deny)

    def create_entity(self, name: str, values: EntityValues, reason: str) -> _Change:
        """State that an entity exists."""

        def create(context: IndexContext, done: _Change) -> None:
            writer = _note_writer(Facts(context.copy.store), context.copy.store)
            self._add_note(context, done, writer, writer.creation(name, values))

        return self._run_correction("Entity stated", reason, create)

    def edit_entity(self, name: str, values: EntityValues, reason: str) -> _Change:
        """State new values for an entity."""

        def edit(context: IndexContext, done: _Change) -> None:
            facts = Facts(context.copy.store)
            writer = _note_writer(facts, context.copy.store)
            self._add_note(context, done, writer, writer.amendment(facts.entity(name), values))

        return self._run_correction("Entity edited", reason, edit)

    def delete_entity(self, name: str, reason: str) -> _Change:
        """Deny an entity and every fact about the entity."""

        def delete(context: IndexContext, done: _Change) -> None:
            store = context.copy.store
            facts = Facts(store)
            members = facts.members(facts.entity(name))
            done.denied += [
                e for fact in facts.read_facts_about(members[0]) for e in facts.originals(fact)
            ]
            done.said.append(f"{facts.label(members[0])} is no entity.")
            _add_denial(done, denial_quads(self.iri, (), members, context.clock()))
            for member in members:
                _touch_entity(store, member, done.touched)

        return self._run_correction("Entity denied", reason, delete)

    def merge(self, name: str, other: str, reason: str) -> _Change:
        """Merge two entities."""

        def join(context: IndexContext, done: _Change) -> None:
            facts = Facts(context.copy.store)
            pair = _pair_to_join(facts, context.copy.store, name, other)
            done.said.append(f"{facts.label(pair[0])} and {facts.label(pair[1])} are one.")
            done.quads += join_quads(self.iri, pair, context.clock())
            done.touched.entities.update(pair)

        return self._run_correction("Merge by hand", reason, join)

    def undo(self, name: str, reason: str) -> _Change:
        """Undo a decision."""
        check_reason(reason)
        with self._workshop() as context:
            started, store, change = context.clock(), context.copy.store, _Change(reason)
            decided = read_curations(store)
            if name == "last":
                decided = [decision for decision in decided if decision.undoable]
            curation = find_curation(decided, name)
            if not curation.undoable:
                raise UsageError(f"{curation.label}: {curation.what} {curation.why_not}")
            change.said.append(f"{curation.label}: {curation.what}")
            for result in curation.undoable:
                self._end_result(context, change, result.kind, result.iri)
            self._finish_change(context, "Undoing", started, change, curation.curation)
        return change

    # --- the parts of one ---

    def _run_correction(
        self, label: str, reason: str, make: Callable[[IndexContext, _Change], None]
    ) -> _Change:
        check_reason(reason)
        with self._workshop() as context:
            started, change = context.clock(), _Change(reason)
            make(context, change)
            self._finish_change(context, label, started, change)
        return change

    def _finish_change(
        self,
        context: IndexContext,
        label: str,
        started: datetime,
        done: _Change,
        undone: str = "",
    ) -> None:
        noted = bool(done.notes)
        self._decide(
            context,
            label,
            done.reason,
            started,
            done.touched,
            done.quads,
            contexts=noted,
            undone=undone,
        )

    def _add_fact(self, context: IndexContext, done: _Change, wanted: NewFact) -> None:
        writer = _note_writer(Facts(context.copy.store), context.copy.store)
        self._add_note(context, done, writer, writer.fact(wanted))

    def _deny_fact(
        self, context: IndexContext, done: _Change, facts: Facts, fact: KnownFact
    ) -> None:
        edges = facts.originals(fact)
        _add_denial(done, denial_quads(self.iri, edges, (), context.clock()))
        done.denied += edges
        done.touched.edges.update(edges)
        done.said.append(f"Denied: {fact.text}.")

    def _add_note(
        self, context: IndexContext, done: _Change, writer: NoteWriter, note: CurationNote
    ) -> None:
        document = v.document_iri(note.sha256)
        if document in read_decisions(context.copy.store).stated:
            raise UsageError(
                f"A person has already stated the fact: {note.statement}",
                "`tgraph curations list` shows the time and the person.",
            )
        author = responsible_agents(context.settings.person)[-1]
        how = Authorship(self.iri, author, (), context.clock(), context.clock())
        quads, record = note_quads(note, how, done.reason, context.record.keep_content(note.text))
        done.quads += quads
        done.touched.entities |= record.entities
        done.touched.edges |= record.edges
        done.said.append(note.statement)
        done.new += writer.new
        done.notes.append(document)

    def _end_result(self, context: IndexContext, done: _Change, kind: str, result: str) -> None:
        """Invalidate a result of an earlier decision."""
        store, node = context.copy.store, NamedNode(result)
        out = Statements(v.SOURCE_GRAPH)
        state_invalidation(out, result, self.iri, context.clock())
        done.quads += out.quads
        if kind == "Accession":
            document = document_of_accession(store, result)
            done.notes.append(document)
            touch_document(store, document, done.touched)
        for document in names_of(store, node, "bearerDocument"):
            touch_document(store, document, done.touched)
        for edge in names_of(store, node, "deniedEdge"):
            if (triple := reified_triple(store, edge)) is not None:
                done.touched.edges[edge] = triple
        for entity in names_of(store, node, "deniedEntity"):
            _touch_entity(store, entity, done.touched)
        for pair in ("together", "apart"):
            done.touched.entities.update(names_of(store, node, pair))


def apply_correction(
    opened: OpenCollection, reason: str, make: Callable[[CorrectionRun], _Change]
) -> Correction:
    """Apply a correction, and question answers that rest on denied edges or ended notes.

    Raises ``UsageError`` for an impossible correction; then nothing changed."""
    run = CorrectionRun(opened.setup())
    change = make(run)
    store, questioned = opened.read(), list[str]()
    if change.denied:
        sessions = answers_on(store, opened.catalogue, change.denied)
        questioned += _question_answers(opened, change.ground, reason, sessions)
    for note in change.notes:
        impact = impact_of(opened, note)
        if not impact.standing:
            sessions = tuple(a.session for a in impact.answers if not a.questioned)
            questioned += _question_answers(opened, note, reason, sessions)
    return Correction(run.iri, " ".join(change.said), tuple(change.new), tuple(questioned))


def _question_answers(
    opened: OpenCollection, ground: str, reason: str, sessions: tuple[str, ...]
) -> tuple[str, ...]:
    if sessions:
        question_answers(opened, ground, reason, sessions)
    return sessions


def _note_writer(facts: Facts, store: Store) -> NoteWriter:
    return NoteWriter(facts, read_decisions(store))


def _add_denial(done: _Change, quads: list[Quad]) -> None:
    done.quads += quads
    done.ground = quads[0].subject.value  # type: ignore[union-attr]


def _pair_to_join(facts: Facts, store: Store, name: str, other: str) -> tuple[str, str]:
    """Return two entities of knowledge that nobody has split by hand."""
    first_entity, two = facts.entity(name), facts.entity(other)
    if first_entity == two:
        raise UsageError(f"{name!r} and {other!r} are already one entity.")
    left_members, right = set(facts.members(first_entity)), set(facts.members(two))
    for pair in read_decisions(store).splits:
        if left_members & set(pair) and right & set(pair):
            raise UsageError(
                f"{name!r} and {other!r} were split by a person.",
                f"Undo the split first: `tgraph entities rejoin {name!r} {other!r}`.",
            )
    return first_entity, two


def _touch_entity(store: Store, entity: str, touched: Touched) -> None:
    """Mark every statement naming the entity as touched, in any spelling."""
    texts = StandingEvidence(store, lambda chunk: True)
    alike = {e for key in texts.keys_of(entity) for e in texts.entities_with(key)}
    for variant in sorted(
        {entity} | {e for e in alike if normalise_entity(e) == normalise_entity(entity)}
    ):
        touched.entities.add(variant)
        touched.edges.update(texts.edges_naming(variant))
        touched.claims |= texts.claims_naming(variant)
