"""Entities and facts of an open graph, as people correct both: ``KnowledgeGraph.entities``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tgraph.engine.change.corrections import Correction, CorrectionRun
    from tgraph.engine.open_collection import OpenCollection
    from tgraph.explain.trace.entities import BearerOfName, Merge, Split
    from tgraph.explain.trace.facts import KnownFact


class Entities:
    """Read and correct entities and facts.

    A correction is a decision of a person: recorded with the reason and, if ``person`` is set,
    with the author, honoured by later index runs until ``KnowledgeGraph.history.undo_curation``
    undoes the correction."""

    def __init__(self, opened: OpenCollection) -> None:
        self._opened = opened

    def create(
        self,
        name: str,
        *,
        reason: str,
        type: str | None = None,
        description: str | None = None,
        aliases: Sequence[str] = (),
    ) -> Correction:
        """State by hand that an entity exists.

        Raises ``UsageError`` if the entity is known, or deleted."""
        from tgraph.engine.change.curation_notes import EntityValues

        values = EntityValues(None, type, description, tuple(aliases))
        return self._apply(reason, lambda run: run.create_entity(name, values, reason))

    def edit(self, name: str, *, reason: str, **values: Any) -> Correction:
        """Override document statements about an entity: ``label``, ``type``, ``description``,
        ``aliases``, ``not_aliases``.

        Raises ``UsageError`` for an unknown entity."""
        from tgraph.engine.change.curation_notes import EntityValues

        new_values = EntityValues(**{field: _to_tuple(value) for field, value in values.items()})
        return self._apply(reason, lambda run: run.edit_entity(name, new_values, reason))

    def delete(self, name: str, *, reason: str) -> Correction:
        """Keep an entity and its facts out of knowledge, under all current names.

        Answers resting on those facts are called into question."""
        return self._apply(reason, lambda run: run.delete_entity(name, reason))

    def merge(self, name: str, other: str, *, reason: str) -> Correction:
        """Merge two entities, regardless of names in documents; the fuller name is kept.

        Raises ``UsageError`` if the entities are merged already, or were parted by
        ``split``."""
        return self._apply(reason, lambda run: run.merge(name, other, reason))

    def split(self, name: str, other: str | None = None, *, reason: str) -> str:
        """Split two names that entity resolution merged; return the split's IRI.

        ``other`` is by default the entity that ``name`` was merged into. The decision stands
        until ``rejoin``. Raises ``UsageError`` if the names are not one entity."""
        from tgraph.engine.change.entity_curation import CurationRun

        return CurationRun(self._opened.setup()).split(name, other, reason)

    def part(self, name: str, documents: Sequence[str], *, qualifier: str, reason: str) -> str:
        """Tell the bearer of a name in some documents apart from others of the name; return the
        bearer's label, the name with the qualifier.

        The decision stands until ``KnowledgeGraph.history.undo_curation``. Raises ``UsageError`` if
        a document is unknown, or does not name the entity."""
        from tgraph.engine.change.entity_curation import CurationRun

        run = CurationRun(self._opened.setup())
        return run.part(name, documents, qualifier, reason).label

    def rejoin(self, name: str, other: str, *, reason: str) -> str:
        """Undo a split; return the split's IRI. The names form one entity again if the texts
        still say so.

        Raises ``UsageError`` if the names have not been split."""
        from tgraph.engine.change.entity_curation import CurationRun

        return CurationRun(self._opened.setup()).rejoin(name, other, reason)

    def read_merges(self) -> list[Merge]:
        """Return names merged into another entity, with grounds."""
        from tgraph.explain.trace.entities import EntityMerges

        return EntityMerges(self._opened.read()).merges()

    def read_splits(self) -> list[Split]:
        """Return splits made by ``split``, unless undone by ``rejoin``."""
        from tgraph.explain.trace.entities import EntityMerges

        return EntityMerges(self._opened.read()).splits()

    def read_bearers(self) -> list[BearerOfName]:
        """Return the bearers of names that several bear, told apart by documents or by ``part``."""
        from tgraph.explain.trace.entities import EntityMerges

        return EntityMerges(self._opened.read()).bearers()

    def read_facts(self, entity: str) -> list[KnownFact]:
        """Return facts about an entity, sorted by wording.

        Raises ``UsageError`` for an unknown entity."""
        from tgraph.explain.trace.facts import Facts

        facts = Facts(self._opened.read())
        return facts.read_facts_about(facts.entity(entity))

    def add_fact(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        reason: str,
        literal: bool = False,
        datatype: str | None = None,
        description: str = "",
        weight: float | None = None,
    ) -> Correction:
        """State a fact by hand, about known or new entities; see ``Correction``.

        The fact is evidence of its own kind, a note: cited, traced and weighed like document
        statements. ``object`` is a value rather than a name with ``literal`` or a ``datatype``;
        ``weight`` is 1 to 10. Raises ``UsageError`` for a denied fact, or for a value outside
        the datatype."""
        from tgraph.engine.change.curation_notes import NewFact

        new_fact = NewFact(
            subject, predicate, object, literal, datatype, description or None, weight
        )
        return self._apply(reason, lambda run: run.add_fact(new_fact, reason))

    def edit_fact(self, *fact: str, reason: str, **values: Any) -> Correction:
        """Replace a fact, denying the old fact, as one decision; or change its ``description``
        or ``weight``.

        ``fact`` and the ``values`` are named as for ``deny_fact`` and ``add_fact``; omitted
        values stay. Raises ``UsageError`` as there."""
        from tgraph.engine.change.curation_notes import NewFact

        new_fact = NewFact(**values)
        return self._apply(reason, lambda run: run.edit_fact(fact, new_fact, reason))

    def deny_fact(self, *fact: str, reason: str) -> Correction:
        """Keep a fact out of knowledge, whatever documents say now or later.

        ``fact`` is the edge's IRI or its beginning, or subject, predicate and object. Document
        statements of the fact stay on record; answers resting on the fact are called into
        question. Raises ``UsageError`` if no fact or several facts match."""
        return self._apply(reason, lambda run: run.deny_fact(fact, reason))

    def _apply(self, reason: str, correct: Callable[[CorrectionRun], Any]) -> Correction:
        from tgraph.engine.change.corrections import apply_correction

        return apply_correction(self._opened, reason, correct)


def _to_tuple(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else tuple(value)
