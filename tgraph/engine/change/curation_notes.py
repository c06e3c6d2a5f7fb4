"""What a person states, put into the words of a note, and what it means for knowledge."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.errors import UsageError
from tgraph.explain.trace.facts import Facts, KnownFact
from tgraph.index.decisions import Decisions
from tgraph.record.curations import CuratedEntity, CuratedFact, CurationNote
from tgraph.rendering import flat
from tgraph.store.statements import edge_of

CONCEPT = "concept"
STRENGTH = 5.0
_NAME = 300
_TAKE_BACK = "`tgraph curations list` shows when and why; `undo` takes it back."


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact as a person gives it, by names, labels or IRIs; empty where it is that of the fact
    which is edited. ``object`` is a name unless it is to be a literal, plain or of a datatype. None
    of ``description`` and ``weight`` says nothing of it."""

    subject: str = ""
    predicate: str = ""
    object: str = ""
    literal: bool = False
    datatype: str | None = None
    description: str | None = None
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class EntityValues:
    """What a person says of an entity; None says nothing of it."""

    label: str | None = None
    type: str | None = None
    description: str | None = None
    aliases: tuple[str, ...] = ()
    not_aliases: tuple[str, ...] = ()


class NoteWriter:
    """Makes notes of what is given, in view of what a graph knows. ``new`` are the names that it
    did not. Its methods raise ``UsageError`` for what can't be stated."""

    def __init__(self, facts: Facts, decisions: Decisions) -> None:
        self.new: list[str] = []
        self._facts = facts
        self._decisions = decisions

    def fact(self, wanted: NewFact, old: KnownFact | None = None) -> CurationNote:
        """The note of a fact, in place of the old one or with other values of it."""
        if old is not None and wanted == NewFact():
            raise UsageError("Nothing is to be changed.", "Give another name, value or weight.")
        subject = self._entity(wanted.subject, old.subject if old else "")
        name = _text(wanted.predicate, "A relation") if wanted.predicate else _label(old)
        predicate = self._relation(wanted.predicate, old)
        obj, shown, ends = self._object(wanted, old)
        triple = Triple(NamedNode(subject.iri), predicate, obj)
        same = old is not None and self._facts.triple(old) == triple
        if not same:
            self._check(triple)
        curates = ("edge",) if not same else ()
        given = {"description": wanted.description, "strength": wanted.weight}
        amended = tuple(key for key, said in given.items() if said is not None)
        description = flat(wanted.description or "")
        stated = CuratedFact(
            triple,
            name,
            description,
            STRENGTH if wanted.weight is None else wanted.weight,
            (*curates, *(amended if same else ())),
        )
        sentence = _sentence(f"{subject.name} {name} {shown}")
        sentences = (sentence, *([_sentence(description)] if description else []))
        return CurationNote(sentences, () if same else (subject, *ends), (stated,))

    def creation(self, name: str, values: EntityValues) -> CurationNote:
        """The note that there is an entity."""
        name = _text(name, "An entity")
        if (known := self._facts.known(name)) is not None:
            raise UsageError(
                f"There is {self._facts.label(known)!r} already.",
                "`tgraph entities edit` changes what is said of it.",
            )
        iri = v.entity_iri(name)
        self._check_entity(iri, name)
        entity = CuratedEntity(
            iri,
            name,
            _text(values.type, "A type") if values.type else CONCEPT,
            flat(values.description or ""),
            _names(values.aliases),
            curates=("entity", *_curated(replace(values, label=name))),
        )
        self.new.append(name)
        return CurationNote(_told(name, values, is_new=True), (entity,))

    def amendment(self, entity: str, values: EntityValues) -> CurationNote:
        """The note of other values of an entity."""
        if values == EntityValues():
            raise UsageError(
                "Nothing is to be changed.", "`tgraph entities edit -h` says what can."
            )
        facts, label = self._facts, self._facts.label(entity)
        missing = [name for name in values.not_aliases if not facts.claims_alias(entity, name)]
        if missing:
            raise UsageError(
                f"{label!r} is not also called {missing[0]!r} by any document.",
                "Names that were merged into it are parted from it by `tgraph entities split`.",
            )
        own = CuratedEntity(
            entity,
            _text(values.label, "A label") if values.label else facts.entities.name(entity),
            _text(values.type, "A type") if values.type else CONCEPT,
            flat(values.description or ""),
            _names(values.aliases),
            _names(values.not_aliases),
            _curated(values) or ("alias",),
        )
        others = [
            CuratedEntity(
                member,
                facts.entities.name(member),
                CONCEPT,
                not_aliases=_names(values.not_aliases),
                curates=("alias",),
            )
            for member in (facts.members(entity)[1:] if values.not_aliases else [])
        ]
        return CurationNote(_told(label, values), (own, *others))

    # --- the parts of a fact ---

    def _entity(self, name: str, otherwise: str = "") -> CuratedEntity:
        """The entity of that name, be it a new one."""
        entity = self._facts.known(name) if name else otherwise
        if entity is None:
            name = _text(name, "An entity")
            entity = v.entity_iri(name)
            self._check_entity(entity, name)
            self.new.append(name)
            return CuratedEntity(entity, name, CONCEPT)
        return CuratedEntity(entity, self._facts.label(entity), CONCEPT)

    def _relation(self, name: str, old: KnownFact | None) -> NamedNode:
        if name or old is None:
            return self._facts.relation(_text(name, "A relation"))
        return NamedNode(old.predicate)

    def _object(
        self, wanted: NewFact, old: KnownFact | None
    ) -> tuple[NamedNode | Literal, str, tuple[CuratedEntity, ...]]:
        if not wanted.object and not wanted.literal and not wanted.datatype and old is not None:
            term = self._facts.triple(old).object
            assert isinstance(term, NamedNode | Literal)
            if isinstance(term, Literal):
                return term, term.value, ()
            entity = self._entity("", term.value)
            return term, entity.name, (entity,)
        if wanted.literal or wanted.datatype:
            text = wanted.object or (old.object_label if old else "")
            literal = literal_of(text, wanted.datatype)
            return literal, literal.value, ()
        entity = self._entity(wanted.object)
        return NamedNode(entity.iri), entity.name, (entity,)

    def _check(self, triple: Triple) -> None:
        if triple.subject == triple.object:
            raise UsageError("A fact is about two things, not twice the same.")
        if edge_of(self._canonical(triple)) in {
            edge_of(self._canonical(denied)) for denied in self._decisions.denied
        }:
            raise UsageError(
                "This was denied by hand.",
                _TAKE_BACK,
            )

    def _canonical(self, triple: Triple) -> Triple:
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
    """The literal; ``UsageError`` where the text is none of the datatype (an IRI, or the name of
    one of XML Schema's with or without ``xsd:``)."""
    if not text:
        raise UsageError("A value can't be empty.")
    if datatype is None:
        return Literal(flat(text))
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
        raise UsageError(f"{text!r} is no {datatype}.", "Dates are written 1911-12-14.")
    return v.canonical(Literal(text, datatype=node))


def _label(old: KnownFact | None) -> str:
    return old.predicate_label if old else ""


def _text(text: str | None, what: str) -> str:
    """The text on one line; ``UsageError`` where there is none, or too much."""
    found = flat(text or "")
    if not v.normalise_name(found) or len(found) > _NAME:
        raise UsageError(f"{what} needs a name of 1 to {_NAME} characters.")
    return found


def _names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({_text(name, "An alias") for name in names}))


def _curated(values: EntityValues) -> tuple[str, ...]:
    given = {"name": values.label, "entityType": values.type, "description": values.description}
    return tuple(key for key, said in given.items() if said is not None)


def _told(name: str, values: EntityValues, *, is_new: bool = False) -> tuple[str, ...]:
    """The values as sentences."""
    said = []
    if values.label is not None and not is_new:
        said.append(f"{name} is to be called {flat(values.label)}.")
    if values.type is not None or is_new:
        kind = flat(values.type or CONCEPT)
        said.append(f"{name} is {'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}.")
    if values.description:
        said.append(_sentence(flat(values.description)))
    elif values.description is not None:
        said.append(f"Nothing is to be said of {name}.")
    said += [f"{name} is also called {alias}." for alias in _names(values.aliases)]
    said += [f"{name} is not called {alias}." for alias in _names(values.not_aliases)]
    return tuple(said)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "。")) else f"{text}."
