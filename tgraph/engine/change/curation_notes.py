"""Curation notes: a person's statements written as notes, and their meaning for knowledge."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.errors import UsageError
from tgraph.explain.trace.facts import Facts, KnownFact
from tgraph.index.decisions import Decisions
from tgraph.record.boundary import names_reserved
from tgraph.record.curations import CuratedEntity, CuratedFact, CurationNote
from tgraph.rendering import collapse_whitespace
from tgraph.store.statements import edge_of

CONCEPT = "concept"
STRENGTH = 5.0
_NAME = 300
_TAKE_BACK = (
    "`tgraph curations list` shows time and reason; `tgraph curations undo` reverses the decision."
)


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact stated by a person with names, labels or IRIs; empty fields keep values of the
    edited fact.

    ``object`` is a name unless it is to be a literal, plain or of a datatype. None for
    ``description`` or ``weight`` leaves the value open."""

    subject: str = ""
    predicate: str = ""
    object: str = ""
    literal: bool = False
    datatype: str | None = None
    description: str | None = None
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class EntityValues:
    """A person's statements about an entity; None leaves a value open."""

    label: str | None = None
    type: str | None = None
    description: str | None = None
    aliases: tuple[str, ...] = ()
    not_aliases: tuple[str, ...] = ()


class NoteWriter:
    """Writes curation notes, given existing graph knowledge; ``new`` lists names unknown so
    far.

    Methods raise ``UsageError`` for impossible statements."""

    def __init__(self, facts: Facts, decisions: Decisions) -> None:
        self.new: list[str] = []
        self._facts = facts
        self._decisions = decisions

    def fact(self, wanted: NewFact, old: KnownFact | None = None) -> CurationNote:
        """Return a note stating a fact, which replaces ``old`` or gives new values for ``old``."""
        if old is not None and wanted == NewFact():
            raise UsageError("The command contains no change.", "Give a new name, value or weight.")
        subject = self._find_entity(wanted.subject, old.subject if old else "")
        name = (
            _check_name(wanted.predicate, "A relation")
            if wanted.predicate
            else _predicate_label(old)
        )
        predicate = self._find_relation(wanted.predicate, old)
        obj, object_text, ends = self._fact_object(wanted, old)
        triple = Triple(NamedNode(subject.iri), predicate, obj)
        same = old is not None and self._facts.triple(old) == triple
        if not same:
            self._check_triple(triple)
        curates = ("edge",) if not same else ()
        values = {"description": wanted.description, "strength": wanted.weight}
        amended = tuple(key for key, value in values.items() if value is not None)
        description = collapse_whitespace(wanted.description or "")
        curated_fact = CuratedFact(
            triple,
            name,
            description,
            STRENGTH if wanted.weight is None else wanted.weight,
            (*curates, *(amended if same else ())),
        )
        sentence = _end_sentence(f"{subject.name} {name} {object_text}")
        sentences = (sentence, *([_end_sentence(description)] if description else []))
        return CurationNote(sentences, () if same else (subject, *ends), (curated_fact,))

    def creation(self, name: str, values: EntityValues) -> CurationNote:
        """Return a note stating that an entity exists."""
        name = _check_name(name, "An entity")
        if (existing_entity := self._facts.find_entity(name)) is not None:
            raise UsageError(
                f"There is {self._facts.label(existing_entity)!r} already.",
                "Use `tgraph entities edit` to change the entity.",
            )
        iri = v.entity_iri(name)
        self._check_entity(iri, name)
        entity = CuratedEntity(
            iri,
            name,
            _check_name(values.type, "A type") if values.type else CONCEPT,
            collapse_whitespace(values.description or ""),
            _check_aliases(values.aliases),
            curates=("entity", *_changed_fields(replace(values, label=name))),
        )
        self.new.append(name)
        return CurationNote(_value_sentences(name, values, is_new=True), (entity,))

    def amendment(self, entity: str, values: EntityValues) -> CurationNote:
        """Return a note stating new values for an entity."""
        if values == EntityValues():
            raise UsageError(
                "The command contains no change.", "`tgraph entities edit -h` lists the options."
            )
        facts, label = self._facts, self._facts.label(entity)
        missing = [name for name in values.not_aliases if not facts.claims_alias(entity, name)]
        if missing:
            raise UsageError(
                f"{label!r} is not also called {missing[0]!r} by any document.",
                "Use `tgraph entities split` to separate a merged name from the entity.",
            )
        main_entity = CuratedEntity(
            entity,
            _check_name(values.label, "A label") if values.label else facts.entities.name(entity),
            _check_name(values.type, "A type") if values.type else CONCEPT,
            collapse_whitespace(values.description or ""),
            _check_aliases(values.aliases),
            _check_aliases(values.not_aliases),
            _changed_fields(values) or ("alias",),
        )
        other_entities = [
            CuratedEntity(
                member,
                facts.entities.name(member),
                CONCEPT,
                not_aliases=_check_aliases(values.not_aliases),
                curates=("alias",),
            )
            for member in (facts.members(entity)[1:] if values.not_aliases else [])
        ]
        return CurationNote(_value_sentences(label, values), (main_entity, *other_entities))

    # --- the parts of a fact ---

    def _find_entity(self, name: str, otherwise: str = "") -> CuratedEntity:
        """Return the entity with the name, or a new entity."""
        entity = self._facts.find_entity(name) if name else otherwise
        if entity is None:
            name = _check_name(name, "An entity")
            entity = v.entity_iri(name)
            self._check_entity(entity, name)
            self.new.append(name)
            return CuratedEntity(entity, name, CONCEPT)
        return CuratedEntity(entity, self._facts.label(entity), CONCEPT)

    def _find_relation(self, name: str, old: KnownFact | None) -> NamedNode:
        if name or old is None:
            return self._facts.relation(_check_name(name, "A relation"))
        return NamedNode(old.predicate)

    def _fact_object(
        self, wanted: NewFact, old: KnownFact | None
    ) -> tuple[NamedNode | Literal, str, tuple[CuratedEntity, ...]]:
        if not wanted.object and not wanted.literal and not wanted.datatype and old is not None:
            term = self._facts.triple(old).object
            assert isinstance(term, NamedNode | Literal)
            if isinstance(term, Literal):
                return term, term.value, ()
            entity = self._find_entity("", term.value)
            return term, entity.name, (entity,)
        if wanted.literal or wanted.datatype:
            text = wanted.object or (old.object_label if old else "")
            literal = literal_of(text, wanted.datatype)
            return literal, literal.value, ()
        entity = self._find_entity(wanted.object)
        return NamedNode(entity.iri), entity.name, (entity,)

    def _check_triple(self, triple: Triple) -> None:
        if triple.subject == triple.object:
            raise UsageError("Subject and object of a fact have to be two different entities.")
        if names_reserved(triple):
            raise UsageError(f"{triple} is not knowledge: what is on record is tgraph's to say.")
        if edge_of(self._canonical_triple(triple)) in {
            edge_of(self._canonical_triple(denied)) for denied in self._decisions.denied
        }:
            raise UsageError(
                "The fact was denied by a person.",
                _TAKE_BACK,
            )

    def _canonical_triple(self, triple: Triple) -> Triple:
        ends = [
            NamedNode(self._facts.entities.canonical(term.value))
            if isinstance(term, NamedNode)
            else term
            for term in (triple.subject, triple.object)
        ]
        return Triple(ends[0], triple.predicate, ends[1])  # type: ignore[arg-type]

    def _check_entity(self, iri: str, name: str) -> None:
        if self._decisions.drops(iri):
            raise UsageError(
                f"{name!r} was deleted by hand.",
                _TAKE_BACK,
            )


def literal_of(text: str, datatype: str | None) -> Literal:
    """Return a literal of the datatype.

    ``datatype`` is an IRI, or the name of an XML Schema datatype with or without ``xsd:``.
    Raises ``UsageError`` if the text does not fit the datatype."""
    if not text:
        raise UsageError("A value can't be empty.")
    if datatype is None:
        return Literal(collapse_whitespace(text))
    name = datatype.removeprefix("xsd:")
    try:
        node = NamedNode(datatype) if "://" in datatype else v.xsd(name)
    except ValueError as error:
        raise UsageError(f"{datatype!r} is no datatype.") from error
    from rdflib import Literal as Checked
    from rdflib import URIRef

    if (
        node.value.startswith(v.XSD)
        and Checked(text, datatype=URIRef(node.value)).ill_typed is not False
    ):
        raise UsageError(f"{text!r} is no {datatype}.", "Write dates as 1911-12-14.")
    return v.canonicalise_literal(Literal(text, datatype=node))


def _predicate_label(old: KnownFact | None) -> str:
    return old.predicate_label if old else ""


def _check_name(text: str | None, what: str) -> str:
    """Return the text on one line.

    Raises ``UsageError`` for an empty or overlong text."""
    name_text = collapse_whitespace(text or "")
    if not v.normalise_name(name_text) or len(name_text) > _NAME:
        raise UsageError(f"{what} needs a name of 1 to {_NAME} characters.")
    return name_text


def _check_aliases(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({_check_name(name, "An alias") for name in names}))


def _changed_fields(values: EntityValues) -> tuple[str, ...]:
    values_by_field = {
        "name": values.label,
        "entityType": values.type,
        "description": values.description,
    }
    return tuple(key for key, value in values_by_field.items() if value is not None)


def _value_sentences(name: str, values: EntityValues, *, is_new: bool = False) -> tuple[str, ...]:
    """Return entity values as sentences."""
    sentences = []
    if values.label is not None and not is_new:
        sentences.append(f"{name} is to be called {collapse_whitespace(values.label)}.")
    if values.type is not None or is_new:
        kind = collapse_whitespace(values.type or CONCEPT)
        sentences.append(f"{name} is {'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}.")
    if values.description:
        sentences.append(_end_sentence(collapse_whitespace(values.description)))
    elif values.description is not None:
        sentences.append(f"Nothing is to be said of {name}.")
    sentences += [f"{name} is also called {alias}." for alias in _check_aliases(values.aliases)]
    sentences += [f"{name} is not called {alias}." for alias in _check_aliases(values.not_aliases)]
    return tuple(sentences)


def _end_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "。")) else f"{text}."
