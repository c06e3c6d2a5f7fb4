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
from tgraph.engine.change.entity_curation import CurationRun, check_reason, impact_of, question
from tgraph.engine.index.document_ingest import touch_document
from tgraph.engine.index.phase import IndexContext
from tgraph.engine.open_collection import OpenCollection
from tgraph.errors import UsageError
from tgraph.explain.audit.impact import answers_on
from tgraph.explain.trace.curations import find_curation, read_curations
from tgraph.explain.trace.facts import Facts, KnownFact
from tgraph.index.decisions import identity
from tgraph.index.sources import document_of_accession
from tgraph.index.standing_knowledge import StandingEvidence
from tgraph.index.touched import Touched
from tgraph.record.activities import Authorship, names_of, responsible, state_invalidation
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
    """What a correction came to. ``curation`` is what `tgraph curations undo` takes back, ``said``
    what was stated or denied, in words; ``new`` are names that were not in the graph before, and
    ``questioned`` the sessions whose answers were called into question."""

    curation: str
    said: str
    new: tuple[str, ...] = ()
    questioned: tuple[str, ...] = ()


@dataclass(slots=True)
class _Change:
    """A decision in the making, for a reason. ``denied`` are edges that leave knowledge because of
    the denial ``ground``, ``notes`` the documents that come or go."""

    reason: str
    quads: list[Quad] = field(default_factory=list)
    touched: Touched = field(default_factory=Touched)
    said: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)
    ground: str = ""
    notes: list[str] = field(default_factory=list)


class CorrectionRun(CurationRun):
    """One correction. Its methods raise ``UsageError`` for what can't be; then nothing changed."""

    def add_fact(self, wanted: NewFact, reason: str) -> _Change:
        """State a fact."""
        return self._correct("Fact stated", reason, lambda c, done: self._add(c, done, wanted))

    def edit_fact(self, names: Sequence[str], wanted: NewFact, reason: str) -> _Change:
        """State another fact in place of one, or other values of the same."""

        def edit(context: IndexContext, done: _Change) -> None:
            facts = Facts(context.copy.store)
            old = facts.find(names)
            writer = _writer(facts, context.copy.store)
            note = writer.fact(wanted, old)
            if any(stated.triple != facts.triple(old) for stated in note.facts):
                self._deny(context, done, facts, old)
            self._note(context, done, writer, note)

        return self._correct("Fact edited", reason, edit)

    def deny_fact(self, names: Sequence[str], reason: str) -> _Change:
        """Deny a fact."""

        def deny(context: IndexContext, done: _Change) -> None:
            facts = Facts(context.copy.store)
            self._deny(context, done, facts, facts.find(names))

        return self._correct("Fact denied", reason, deny)

    def create_entity(self, name: str, values: EntityValues, reason: str) -> _Change:
        """State that there is an entity."""

        def create(context: IndexContext, done: _Change) -> None:
            writer = _writer(Facts(context.copy.store), context.copy.store)
            self._note(context, done, writer, writer.creation(name, values))

        return self._correct("Entity stated", reason, create)

    def edit_entity(self, name: str, values: EntityValues, reason: str) -> _Change:
        """State other values of an entity."""

        def edit(context: IndexContext, done: _Change) -> None:
            facts = Facts(context.copy.store)
            writer = _writer(facts, context.copy.store)
            self._note(context, done, writer, writer.amendment(facts.entity(name), values))

        return self._correct("Entity edited", reason, edit)

    def delete_entity(self, name: str, reason: str) -> _Change:
        """Deny an entity, with all that is stated of it."""

        def delete(context: IndexContext, done: _Change) -> None:
            store = context.copy.store
            facts = Facts(store)
            members = facts.members(facts.entity(name))
            done.denied += [e for fact in facts.about(members[0]) for e in facts.originals(fact)]
            done.said.append(f"{facts.label(members[0])} is no entity.")
            _add_denial(done, denial_quads(self.iri, (), members, context.clock()))
            for member in members:
                _touch_entity(store, member, done.touched)

        return self._correct("Entity denied", reason, delete)

    def merge(self, name: str, other: str, reason: str) -> _Change:
        """Make two entities one."""

        def join(context: IndexContext, done: _Change) -> None:
            facts = Facts(context.copy.store)
            pair = _pair_to_join(facts, context.copy.store, name, other)
            done.said.append(f"{facts.label(pair[0])} and {facts.label(pair[1])} are one.")
            done.quads += join_quads(self.iri, pair, context.clock())
            done.touched.entities.update(pair)

        return self._correct("Merge by hand", reason, join)

    def undo(self, name: str, reason: str) -> _Change:
        """Take a decision back."""
        check_reason(reason)
        with self._workshop() as context:
            started, store, done = context.clock(), context.copy.store, _Change(reason)
            decided = read_curations(store)
            if name == "last":
                decided = [each for each in decided if each.undoable]
            curation = find_curation(decided, name)
            if not curation.undoable:
                raise UsageError(f"{curation.label}: {curation.what} {curation.why_not}")
            done.said.append(f"{curation.label}: {curation.what}")
            for result in curation.undoable:
                self._end(context, done, result.kind, result.iri)
            self._finish(context, "Undoing", started, done, curation.curation)
        return done

    # --- the parts of one ---

    def _correct(
        self, label: str, reason: str, make: Callable[[IndexContext, _Change], None]
    ) -> _Change:
        check_reason(reason)
        with self._workshop() as context:
            started, done = context.clock(), _Change(reason)
            make(context, done)
            self._finish(context, label, started, done)
        return done

    def _finish(
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

    def _add(self, context: IndexContext, done: _Change, wanted: NewFact) -> None:
        writer = _writer(Facts(context.copy.store), context.copy.store)
        self._note(context, done, writer, writer.fact(wanted))

    def _deny(self, context: IndexContext, done: _Change, facts: Facts, fact: KnownFact) -> None:
        edges = facts.originals(fact)
        _add_denial(done, denial_quads(self.iri, edges, (), context.clock()))
        done.denied += edges
        done.touched.edges.update(edges)
        done.said.append(f"Denied: {fact.text}.")

    def _note(
        self, context: IndexContext, done: _Change, writer: NoteWriter, note: CurationNote
    ) -> None:
        document = v.document_iri(note.sha256)
        if document in read_decisions(context.copy.store).stated:
            raise UsageError(
                f"This is stated by hand already: {note.statement}",
                "`tgraph curations list` shows when and by whom.",
            )
        author = responsible(context.settings.person)[-1]
        how = Authorship(self.iri, author, (), context.clock(), context.clock())
        quads, record = note_quads(note, how, done.reason, context.record.keep(note.text))
        done.quads += quads
        done.touched.entities |= record.entities
        done.touched.edges |= record.edges
        done.said.append(note.statement)
        done.new += writer.new
        done.notes.append(document)

    def _end(self, context: IndexContext, done: _Change, kind: str, result: str) -> None:
        """End what a decision made."""
        store, node = context.copy.store, NamedNode(result)
        out = Statements(v.SOURCE_GRAPH)
        state_invalidation(out, result, self.iri, context.clock())
        done.quads += out.quads
        if kind == "Accession":
            document = document_of_accession(store, result)
            done.notes.append(document)
            touch_document(store, document, done.touched)
        for edge in names_of(store, node, "deniedEdge"):
            if (triple := reified_triple(store, edge)) is not None:
                done.touched.edges[edge] = triple
        for entity in names_of(store, node, "deniedEntity"):
            _touch_entity(store, entity, done.touched)
        for pair in ("together", "apart"):
            done.touched.entities.update(names_of(store, node, pair))


def correct(
    opened: OpenCollection, reason: str, make: Callable[[CorrectionRun], _Change]
) -> Correction:
    """Make the correction, and call the answers into question that rest on what is denied by it or
    on a note that it ended. ``UsageError`` where it can't be; then nothing changed."""
    run = CorrectionRun(opened.setup())
    done = make(run)
    store, questioned = opened.read(), list[str]()
    if done.denied:
        sessions = answers_on(store, opened.catalogue, done.denied)
        questioned += _questioned(opened, done.ground, reason, sessions)
    for note in done.notes:
        found = impact_of(opened, note)
        if not found.standing:
            sessions = tuple(a.session for a in found.answers if not a.questioned)
            questioned += _questioned(opened, note, reason, sessions)
    return Correction(run.iri, " ".join(done.said), tuple(done.new), tuple(questioned))


def _questioned(
    opened: OpenCollection, ground: str, reason: str, sessions: tuple[str, ...]
) -> tuple[str, ...]:
    if sessions:
        question(opened, ground, reason, sessions)
    return sessions


def _writer(facts: Facts, store: Store) -> NoteWriter:
    return NoteWriter(facts, read_decisions(store))


def _add_denial(done: _Change, quads: list[Quad]) -> None:
    done.quads += quads
    done.ground = quads[0].subject.value  # type: ignore[union-attr]


def _pair_to_join(facts: Facts, store: Store, name: str, other: str) -> tuple[str, str]:
    """The two entities of knowledge, which nobody has told apart."""
    one, two = facts.entity(name), facts.entity(other)
    if one == two:
        raise UsageError(f"{name!r} and {other!r} are one entity already.")
    left, right = set(facts.members(one)), set(facts.members(two))
    for pair in read_decisions(store).splits:
        if left & set(pair) and right & set(pair):
            raise UsageError(
                f"{name!r} and {other!r} were told apart by hand.",
                f"Take that back first: `tgraph entities rejoin {name!r} {other!r}`.",
            )
    return one, two


def _touch_entity(store: Store, entity: str, touched: Touched) -> None:
    """Touch all that is stated under the name, however it is written."""
    texts = StandingEvidence(store, lambda chunk: True)
    alike = {e for key in texts.keys_of(entity) for e in texts.entities_with(key)}
    for one in sorted({entity} | {e for e in alike if identity(e) == identity(entity)}):
        touched.entities.add(one)
        touched.edges.update(texts.edges_naming(one))
        touched.claims |= texts.claims_naming(one)
