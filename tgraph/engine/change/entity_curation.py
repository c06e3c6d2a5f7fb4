"""What a user decides: names are split and rejoined, documents weighed and retracted.

The decision enters the source graph, knowledge is derived again from there, and both are published
as one batch. What was recorded stays; the answers that rest on a retracted document are called into
question. Design, sections 3.3, 3.4 and 3.6.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from glob import has_magic

from pyoxigraph import Quad

from tgraph import vocabulary as v
from tgraph.engine.index.derivation import FollowUp, follow_up
from tgraph.engine.index.document_ingest import touch_document
from tgraph.engine.index.phase import IndexContext
from tgraph.engine.index.run import BUSY, Run
from tgraph.engine.open_collection import OpenCollection
from tgraph.engine.progress import OnProgress, ignore_progress
from tgraph.errors import UsageError
from tgraph.explain.audit.impact import Impact, affected_answers, read_impact
from tgraph.explain.trace.documents import find_document, name_some
from tgraph.explain.trace.entities import EntityMerges
from tgraph.index.authority import pattern_of, read_authorities, standing_weightings
from tgraph.index.homonyms import Bearer, bearer_of
from tgraph.index.sources import (
    PRUNING,
    RETRACTION,
    document_of_accession,
    evidence_of_document,
    is_retracted,
    standing_accessions,
    text_value,
)
from tgraph.index.touched import Touched
from tgraph.record.activities import responsible_agents, state_invalidation
from tgraph.record.assessments import InvalidationRecord
from tgraph.record.merges import (
    curation_quads,
    parting_quads,
    read_partings,
    rejoin_quads,
    split_quads,
    weighting_quads,
)
from tgraph.rendering import collapse_whitespace
from tgraph.store.base import Store
from tgraph.store.statements import Statements


class CurationRun(Run):
    """One decision. Copy, derivation, communities, vectors and commit are those of an index run."""

    kind = "curation"
    busy = BUSY

    def split(self, name: str, other: str | None, reason: str) -> str:
        """The IRI of the new split. Raises ``UsageError``; then nothing changed."""
        check_reason(reason)
        with self._workshop() as context:
            started, decided = context.clock(), context.clock()
            pair = _pair_to_split(EntityMerges(context.copy.store), name, other)
            quads = split_quads(self.iri, pair, decided)
            self._decide(context, "Split", reason, started, Touched(set(pair)), quads)
        return quads[0].subject.value  # type: ignore[union-attr]

    def rejoin(self, name: str, other: str, reason: str) -> str:
        """Undo a split, and return the split's IRI.

        Raises ``UsageError``; then nothing changed."""
        check_reason(reason)
        with self._workshop() as context:
            started, decided = context.clock(), context.clock()
            entities = EntityMerges(context.copy.store)
            pair = entities.find(name), entities.find(other)
            split = entities.split_of(*pair)
            quads = rejoin_quads(self.iri, split, decided)
            self._decide(context, "Rejoining", reason, started, Touched(set(pair)), quads)
        return split

    def part(self, name: str, documents: Sequence[str], qualifier: str, reason: str) -> Bearer:
        """Tell the bearer of a name in some documents apart from others of the name.

        Raises ``UsageError``; then nothing changed."""
        check_reason(reason)
        if not qualifier.strip():
            raise UsageError("The words that tell the bearer apart are missing.")
        with self._workshop() as context:
            started, store, touched = context.clock(), context.copy.store, Touched()
            bearer = _bearer_to_part(store, name, documents, collapse_whitespace(qualifier))
            quads = parting_quads(self.iri, bearer, context.clock())
            for document in bearer.documents:
                touch_document(store, document, touched)
            self._decide(context, "Parting", reason, started, touched, quads)
        return bearer

    def weigh(self, target: str, authority: float | None, reason: str) -> str:
        """Set document authority; return the affected path or path pattern.

        Raises ``UsageError``; then nothing changed."""
        check_reason(reason)
        check_authority(authority)
        with self._workshop() as context:
            started, store = context.clock(), context.copy.store
            pattern = target if has_magic(target) else find_document(store, target).path
            previous = [w for w in standing_weightings(store) if pattern_of(store, w) == pattern]
            _check_change(store, pattern, previous, authority)
            quads = weighting_quads(self.iri, pattern, authority, previous, context.clock())
            self._decide(context, "Weighting", reason, started, Touched(), quads)
        return pattern

    def retract(self, document: str, paths: Collection[str], reason: str) -> bool:
        """Retract a document at the paths; return False if already retracted.

        The content stands as long as another path stands: knowledge then stays the same."""
        with self._workshop() as context:
            store, started, touched = context.copy.store, context.clock(), Touched()
            standing = standing_accessions(store, document)
            ended = [accession for accession, path in standing.items() if path in paths]
            is_copied = len(ended) < len(standing)
            if not ended and (is_copied or is_retracted(store, document)):
                return False
            if not is_copied:
                touch_document(store, document, touched)
            quads = self._ending_quads(ended, context.clock())
            withdrawn = None if is_copied else document
            self._decide(context, RETRACTION, reason, started, touched, quads, withdrawn)
        return True

    def prune(self, accessions: Collection[str], reason: str) -> FollowUp | None:
        """Retract the documents of accessions whose files are gone, all by one decision; return
        None if none of them stands."""
        with self._workshop() as context:
            store, started, touched = context.copy.store, context.clock(), Touched()
            documents = {document_of_accession(store, accession) for accession in accessions}
            standing = {document: standing_accessions(store, document) for document in documents}
            ended = [a for paths in standing.values() for a in paths if a in accessions]
            if not ended:
                return None
            withdrawn = [d for d, paths in standing.items() if not paths.keys() - set(accessions)]
            for document in sorted(withdrawn):
                touch_document(store, document, touched)
            quads = self._ending_quads(sorted(ended), context.clock())
            return self._decide(
                context, PRUNING, reason, started, touched, quads, contexts=bool(withdrawn)
            )

    def _decide(
        self,
        context: IndexContext,
        label: str,
        reason: str,
        started: datetime,
        touched: Touched,
        quads: list[Quad],
        document: str | None = None,
        *,
        contexts: bool = False,
        undone: str = "",
    ) -> FollowUp:
        """Record a decision and derive knowledge anew.

        ``contexts`` says whether chunks came or went with no document named; ``undone`` is the
        curation that this decision takes back."""
        context.copy.add(quads)
        contexts = contexts or document is not None
        followed = follow_up(context, touched, started, contexts=contexts)
        agents = responsible_agents(context.settings.person)
        ended = context.clock()
        context.copy.add(
            curation_quads(self.iri, label, reason, started, ended, agents, document, undone)
        )
        self._commit(context)
        self._publish(context)
        return followed

    def _ending_quads(self, accessions: Sequence[str], when: datetime) -> list[Quad]:
        out = Statements(v.SOURCE_GRAPH)
        for accession in accessions:
            state_invalidation(out, accession, self.iri, when)
        return out.quads


def _bearer_to_part(store: Store, name: str, documents: Sequence[str], qualifier: str) -> Bearer:
    """Return the bearer that the documents mean; raise ``UsageError`` if a document does not name
    the entity, or means a bearer already."""
    entities = EntityMerges(store)
    entity = entities.find(name)
    found = [find_document(store, document) for document in documents]
    taken = {
        document: parting.bearer.label
        for parting in read_partings(store)
        if parting.stands and parting.by_hand and parting.bearer.name == entity
        for document in parting.bearer.documents
    }
    for document in found:
        evidence = evidence_of_document(store, document.document)
        if not any(text_value(store, item, v.tg("entity")) == entity for item in evidence):
            raise UsageError(f"{document.path} does not name {entities.name(entity)!r}.")
        if document.document in taken:
            raise UsageError(
                f"{document.path} means {taken[document.document]!r} already.",
                "`tgraph curations undo` takes a parting back.",
            )
    iris = {document.document for document in found}
    return bearer_of(entity, entities.name(entity), qualifier, iris)


def check_reason(reason: str) -> None:
    """Raise ``UsageError`` for an empty reason."""
    if not reason.strip():
        raise UsageError("The reason of the decision is missing.")


def check_authority(authority: float | None) -> None:
    """Raise ``UsageError`` for an authority below 0, above 1, or not a number."""
    if authority is not None and not 0 <= authority <= 1:
        raise UsageError(f"An authority is between 0 and 1, not {authority:g}.")


def _check_change(
    store: Store, pattern: str, previous: Sequence[str], authority: float | None
) -> None:
    """Raise ``UsageError`` if the decision would change nothing."""
    if authority is None and not previous:
        raise UsageError(
            f"{pattern} has no authority that was set.",
            "`tgraph documents list` shows the authority of documents.",
        )
    if previous and read_authorities(store).weights[pattern] == authority:
        raise UsageError(f"{pattern} has an authority of {authority:g} already.")


def _pair_to_split(entities: EntityMerges, name: str, other: str | None) -> tuple[str, str]:
    """Return two entities of the texts that form a single entity of knowledge."""
    first = entities.find(name)
    second = entities.find(other) if other is not None else entities.canonical(first)
    if first == second:
        raise UsageError(
            f"{entities.name(first)!r} was not merged into another name.",
            "Name both entities; `tgraph entities merges` lists all merges.",
        )
    if entities.canonical(first) != entities.canonical(second):
        raise UsageError(
            f"{entities.name(first)!r} and {entities.name(second)!r} are not one entity.",
            "`tgraph entities merges` lists all merges.",
        )
    return first, second


@dataclass(frozen=True, slots=True)
class Retraction:
    """The results of a retraction.

    ``impact`` lists facts and answers resting on the document before, and other paths where the
    same content stands; ``questioned`` are sessions whose answers were called into question
    now."""

    impact: Impact
    questioned: tuple[str, ...]


def impact_of(opened: OpenCollection, document: str, *, all_copies: bool = False) -> Impact:
    """As ``KnowledgeGraph.impact``."""
    return read_impact(opened.read(), opened.catalogue, document, all_copies=all_copies)


def retract_document(
    opened: OpenCollection, document: str, reason: str, *, all_copies: bool = False
) -> Retraction:
    """As ``KnowledgeGraph.retract``."""
    check_reason(reason)
    before = impact_of(opened, document, all_copies=all_copies)
    check_paths(before, document, all_copies=all_copies)
    changed, sessions = take_back(opened, before, reason)
    if not changed and not sessions:
        raise UsageError(
            f"{before.path} was retracted already.",
            "`tgraph index --reinstate` includes the document again.",
        )
    return Retraction(before, sessions)


def check_paths(before: Impact, name: str, *, all_copies: bool) -> None:
    """Raise ``UsageError`` if a name means several paths where a document stands, or a path where
    the document does not stand while its content stands elsewhere."""
    if len(before.paths) > 1 and not all_copies:
        raise UsageError(
            f"{name!r} stands at {len(before.paths):,} paths ({name_some(before.paths)}).",
            "Give one of the paths, or ask for all copies (`--all-copies`).",
        )
    if before.copies and not before.paths:
        raise UsageError(
            f"{before.path} was retracted or replaced already; the same content stands at "
            f"{name_some(before.copies)}.",
            "Give that path, or ask for all copies (`--all-copies`).",
        )


def take_back(
    opened: OpenCollection, before: Impact, reason: str, progress: OnProgress = ignore_progress
) -> tuple[bool, tuple[str, ...]]:
    """Retract a document at the paths of its impact; return whether the document still stood
    there, and sessions with newly questioned answers."""
    changed = CurationRun(opened.setup(progress)).retract(before.document, before.paths, reason)
    if standing_accessions(opened.read(), before.document):
        return changed, ()
    return changed, question_unquestioned(opened, before.document, reason)


def question_unquestioned(opened: OpenCollection, document: str, reason: str) -> tuple[str, ...]:
    """Call all answers that rest on a document into question; return the sessions of those that
    were not yet."""
    answers = affected_answers(opened.read(), opened.catalogue, document)
    sessions = tuple(answer.session for answer in answers if not answer.questioned)
    if sessions:
        question_answers(opened, document, reason, sessions)
    return sessions


def question_answers(
    opened: OpenCollection, ground: str, reason: str, sessions: tuple[str, ...]
) -> None:
    """Call session answers into question because of an undone document or a denial."""
    record = opened.record(InvalidationRecord)
    try:
        record.write(
            ground,
            reason,
            [session.removeprefix(v.session_iri("")) for session in sessions],
            opened.settings.person,
            opened.folder.name,
            opened.settings.explain_collection,
        )
    finally:
        record.close()
    opened.read()
