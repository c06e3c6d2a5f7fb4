"""How what was read fits an ontology: which class an entity is of, which property an edge states.

A function of what the evidence says and of the ontology alone, so that another ontology asks for no
reading: names and predicates stay in the evidence as the texts have them, and knowledge has the
ontology's terms in their place. Words are compared by their bases; what words don't tell, such as
that one verb means another, the ontology has to say (``skos:altLabel``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.extract.entity_types import kind_of_noun
from tgraph.extract.ontology import Ontology, OntologyProperty, Phrase, phrase
from tgraph.index.standing_knowledge import Properties, commonest, type_of
from tgraph.resources import tables, word_set

VERSION = "1"
"""Changes when the same ontology and evidence come to something else."""

UNKNOWN_TYPE, UNKNOWN_PROPERTY = "unknown type", "unknown property"
DOMAIN, RANGE = "domain", "range"
KEPT, RETYPED = "kept", "retyped"

_DATES, _WHOLE, _OTHERS, _TEXTS = (
    word_set("ontology", key) for key in ("dates", "whole", "numbers", "texts")
)
_NUMBERS = _WHOLE | _OTHERS


@dataclass(frozen=True, slots=True)
class EntityFit:
    """The class that an entity is of (empty: none), whether its own type was that (``kept``) or
    something that means it (``retyped``), and why it is outside the ontology."""

    iri: str = ""
    how: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EdgeFit:
    """The triple that an edge is in knowledge, whether its own predicate was a property (``kept``)
    or means one (``retyped``), and why it is outside the ontology."""

    triple: Triple
    how: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class End:
    """A statement as one of its ends has it: with which predicate, on which side, and whether the
    other end is a value."""

    predicate: str
    is_subject: bool
    is_valued: bool


def ends_of(entities: Collection[str], triple: Triple) -> Iterator[End]:
    """The ends of the triple that are one of the entities."""
    is_valued = isinstance(triple.object, Literal)
    for node, is_subject in ((triple.subject, True), (triple.object, False)):
        if isinstance(node, NamedNode) and node.value in entities:
            yield End(triple.predicate.value, is_subject, is_valued)


EntityFits = Callable[[str], EntityFit]
"""How an entity fits, by its canonical name."""

_FITS = EntityFit()


class OntologyFit:
    """Fits entities and edges to an ontology. ``key`` tells what it does apart from what another
    does; ``strict`` that what is outside does not enter knowledge."""

    def __init__(self, ontology: Ontology, *, strict: bool = False, key: str = "") -> None:
        self.ontology = ontology
        self.strict = strict
        self.key = v.digest(VERSION, key, str(strict))

    # --- entities ---

    def entity(
        self, evidence: Sequence[Properties], stated: Callable[[], Iterable[End]] = tuple
    ) -> EntityFit:
        """What class an entity with this evidence is of. Of several that its types mean, the one
        with which most of what is ``stated`` of it fits, then the commonest; and the one that the
        noun of its name means, where that tells more."""
        if not self.ontology.classes:
            return _FITS
        meant = dict(filter(None, map(self._of_type, reversed(_types(evidence)))))
        found = [*reversed(meant)]
        if len(found) > 1:
            ends = list(stated())
            found.sort(key=lambda iri: -sum(self._may_be(iri, end) for end in ends))
        by_type = found[0] if found else ""
        how = meant.get(by_type, "")
        by_name = self._of_name(commonest(evidence, "name"))
        if by_name and (not by_type or by_type in self.ontology.above(by_name)):
            return EntityFit(by_name, how if by_name == by_type else RETYPED)
        return EntityFit(by_type, how, "" if by_type else UNKNOWN_TYPE)

    def _may_be(self, iri: str, end: End) -> bool:
        """Whether what has this end of a statement may be of the class, as far as a property that
        the predicate means says anything of it."""
        for name, swapped, sure in self._candidates(end.predicate):
            known = self.ontology.properties[name]
            if sure and not (end.is_valued and (swapped or known.literal is False)):
                is_subject = end.is_subject != swapped
                choices = self._domains(known) if is_subject else self._ranges(known)
                if choices:
                    return all(choice & self.ontology.above(iri) for choice in choices)
        return False

    def classes_of(self, evidence: Sequence[Properties]) -> dict[str, str]:
        """Every class that some of the evidence says, with the type that means it."""
        found: dict[str, str] = {}
        for kind in _types(evidence):
            if meant := self._of_type(kind):
                found.setdefault(meant[0], kind)
        return found

    def _of_type(self, kind: str) -> tuple[str, str] | None:
        """The class that a type means, and how."""
        if kind in self.ontology.classes:
            return kind, KEPT
        own = phrase(kind)
        if found := self._class_named(own):
            return found, KEPT if self.ontology.label(
                found
            ).casefold() == kind.casefold() else RETYPED
        for other in _kinds(kind):
            if found := self._class_named(phrase(other)):
                return found, RETYPED
        return None

    def _of_name(self, name: str) -> str:
        """The class of the noun of a name: ``Nimrod Expedition``, ``Bay of Whales``."""
        words = name.split()
        if len(words) < 2:
            return ""
        noun = words[words.index("of") - 1] if "of" in words[1:] else words[-1]
        return self._class_named(phrase(noun))

    def _class_named(self, said: Phrase) -> str:
        return self._classes.get(_joined(said), "")

    @cached_property
    def _classes(self) -> Mapping[str, str]:
        """Classes by their names, labels first."""
        found: dict[str, str] = {}
        terms = sorted(self.ontology.classes.values(), key=lambda term: term.iri)
        for term in terms:
            found.setdefault(_joined(phrase(term.label)), term.iri)
        for term in terms:
            for name in term.names:
                found.setdefault(_joined(phrase(name)), term.iri)
        found.pop("", None)
        return found

    # --- edges ---

    def edge(self, triple: Triple, fits: EntityFits) -> EdgeFit:
        """What a triple with canonical names is in knowledge. Of properties that its predicate may
        mean, the first whose domain and range hold; where none does, it stays as it is."""
        ends = _Ends(triple, fits)
        if not self.ontology.properties:
            return EdgeFit(triple, reason=ends.unknown)
        first = ""
        for known, swapped, sure in self._meant(triple.predicate.value):
            if swapped and ends.is_literal:
                continue
            subject, obj = ends.of(triple, swapped)
            reason = self._wrong(known, subject, obj, fits)
            if not reason and (sure or not ends.unknown):
                node = NamedNode(known.predicate)
                same = node == triple.predicate or _is_label(triple.predicate.value, known)
                how = KEPT if same and not swapped else RETYPED
                if ends.unknown and self.strict:
                    return EdgeFit(triple, how, ends.unknown)
                return EdgeFit(Triple(subject, node, obj), how, ends.unknown)
            first = first or reason
        return EdgeFit(triple, reason=first or UNKNOWN_PROPERTY)

    def meant(self, triple: Triple) -> OntologyProperty | None:
        """The first of the properties that the predicate may mean, whether what it joins fits."""
        found = self._meant(triple.predicate.value)
        return next((known for known, _, _ in found), None)

    def ends_of(
        self, known: OntologyProperty
    ) -> tuple[tuple[frozenset[str], ...], tuple[frozenset[str], ...]]:
        """The domains and ranges of a property, those of what it is below where it has none."""
        return self._domains(known), self._ranges(known)

    def label(self, predicate: str) -> str:
        """The label of the property that a predicate is; empty where it is none."""
        known = self._by_predicate.get(predicate)
        return known.label if known else ""

    def _meant(self, predicate: str) -> Iterator[tuple[OntologyProperty, bool, bool]]:
        """The properties that a predicate may mean, whether its ends are swapped then, and whether
        its words say so without regard to what it joins."""
        seen: set[tuple[str, bool]] = set()
        for iri, swapped, sure in self._candidates(predicate):
            known = self.ontology.properties[iri]
            if (iri, swapped) not in seen:
                seen.add((iri, swapped))
                yield known, swapped, sure
            if sure:  # what it says of the one, its inverse says of the other
                for other in sorted(known.inverses & self.ontology.properties.keys()):
                    if (other, not swapped) not in seen:
                        seen.add((other, not swapped))
                        yield self.ontology.properties[other], not swapped, False

    def _candidates(self, predicate: str) -> Iterator[tuple[str, bool, bool]]:
        if known := self._by_predicate.get(predicate):
            yield known.iri, False, True
        readings = phrase(_said(predicate)).readings
        for said in readings:
            for iri, swapped in self._properties[said]:
                yield iri, swapped, True
        for said in readings:
            for other, turned, sure in _variants(said):
                for iri, swapped in self._properties[other]:
                    yield iri, swapped != turned, sure

    @cached_property
    def _by_predicate(self) -> Mapping[str, OntologyProperty]:
        return {p.predicate: p for p in reversed([*self.ontology.properties.values()])}

    @cached_property
    def _properties(self) -> Mapping[Phrase, list[tuple[str, bool]]]:
        """Properties by what they are called, labels first; of a name in the passive voice also by
        its verb, with the ends swapped."""
        found: defaultdict[Phrase, list[tuple[str, bool]]] = defaultdict(list)
        terms = sorted(self.ontology.properties.values(), key=lambda term: term.iri)
        named = [(term, term.label) for term in terms]
        named += [(term, name) for term in terms for name in term.names]
        readings = [
            (term.iri, said) for term, name in named for said in phrase(name).readings if said.words
        ]
        for iri, said in readings:
            _add(found[said], (iri, False))
            _add(found[_compound(said)], (iri, False))
        for iri, said in readings:
            if "by" in said.prepositions and said.passive:
                _add(found[_without(said, "by")], (iri, True))
        found.default_factory = None
        return _PropertyIndex(found)

    # --- what a property joins ---

    def _wrong(
        self,
        known: OntologyProperty,
        subject: NamedNode,
        obj: NamedNode | Literal,
        fits: EntityFits,
    ) -> str:
        if not all(self._is_of(subject, choice, fits) for choice in self._domains(known)):
            return DOMAIN
        if isinstance(obj, Literal):
            return "" if self._takes(known, obj) else RANGE
        if known.literal:
            return RANGE
        ranges = all(self._is_of(obj, choice, fits) for choice in self._ranges(known))
        return "" if ranges else RANGE

    def _domains(self, known: OntologyProperty) -> tuple[frozenset[str], ...]:
        """Its own, or those of what it is below; else the ranges of what it is the inverse of."""
        return self._inherited(known, "domains") or self._of_inverses(known, "ranges")

    def _ranges(self, known: OntologyProperty) -> tuple[frozenset[str], ...]:
        return self._inherited(known, "ranges") or self._of_inverses(known, "domains")

    def _of_inverses(self, known: OntologyProperty, name: str) -> tuple[frozenset[str], ...]:
        others = (self.ontology.properties.get(iri) for iri in sorted(known.inverses))
        return next((f for o in others if o and (f := self._inherited(o, name))), ())

    def _inherited(self, known: OntologyProperty, name: str) -> tuple[frozenset[str], ...]:
        seen, queue = {known.iri}, [known]
        while queue:
            one = queue.pop(0)
            found: tuple[frozenset[str], ...] = getattr(one, name)
            if found:
                return found
            above = (self.ontology.properties.get(iri) for iri in sorted(one.parents - seen))
            queue += filter(None, above)
            seen |= one.parents
        return ()

    def _is_of(self, entity: NamedNode, choice: frozenset[str], fits: EntityFits) -> bool:
        """Whether nothing speaks against the entity being of one of the classes."""
        known = choice & self.ontology.classes.keys()
        iri = fits(entity.value).iri
        return not known or not iri or not known.isdisjoint(self.ontology.above(iri))

    def _takes(self, known: OntologyProperty, value: Literal) -> bool:
        """Whether the literal may be a value: of the datatype, or of one that says the same less
        exactly, such as the year of a date."""
        if known.literal is False or (known.ranges and not known.datatypes):
            return False
        own = value.datatype.value
        return not known.datatypes or any(_is_a(own, datatype) for datatype in known.datatypes)


def _types(evidence: Sequence[Properties]) -> list[str]:
    """The types that the evidence gives, that which counts first, then the commonest."""
    counts = Counter(term.value for item in evidence for term in item.get("entityType", ()))
    rest = sorted(counts, key=lambda kind: (-counts[kind], kind))
    return list(dict.fromkeys(filter(None, [type_of(evidence), *rest])))


def _kinds(kind: str) -> Iterator[str]:
    """What a type is too: what its noun denotes, other words for that, and what is above it."""
    data = tables("entity_types")
    noun = phrase(kind).words[-1:]
    plain = [kind.lower(), *noun]
    denoted = [found for word in plain if (found := kind_of_noun(word))]
    known = dict.fromkeys([*plain, *denoted])
    yield from denoted
    for one in known:
        yield from data["synonyms"].get(one, "").split()
    for one in known:
        for above in data["broader"].get(one, "").split():
            yield above
            yield from data["synonyms"].get(above, "").split()


class _Ends:
    """The ends of a triple."""

    def __init__(self, triple: Triple, fits: EntityFits) -> None:
        nodes = [n for n in (triple.subject, triple.object) if isinstance(n, NamedNode)]
        self.is_literal = isinstance(triple.object, Literal)
        outside = (fits(node.value).reason for node in nodes)
        self.unknown = next(filter(None, outside), "")

    def of(self, triple: Triple, swapped: bool) -> tuple[NamedNode, NamedNode | Literal]:
        subject, obj = triple.subject, triple.object
        assert isinstance(subject, NamedNode)
        assert isinstance(obj, NamedNode | Literal)
        if swapped:
            assert isinstance(obj, NamedNode)
            return obj, subject
        return subject, obj


class _PropertyIndex(dict[Phrase, list[tuple[str, bool]]]):
    """What is not there is nothing."""

    def __missing__(self, key: Phrase) -> list[tuple[str, bool]]:
        return []


def _add(items: list[tuple[str, bool]], item: tuple[str, bool]) -> None:
    if item not in items:
        items.append(item)


def _said(predicate: str) -> str:
    """The words of a predicate."""
    prefix = v.relation_iri("")
    if predicate.startswith(prefix):
        return unquote(predicate.removeprefix(prefix)).replace("-", " ")
    return predicate.rpartition("#")[2].rpartition("/")[2]


def _is_label(predicate: str, known: OntologyProperty) -> bool:
    return predicate == v.relation_iri(known.label)


def _joined(said: Phrase) -> str:
    return "".join((*said.prepositions, *said.words))


def _compound(said: Phrase) -> Phrase:
    """``birthplace`` for ``birth place``."""
    return Phrase(("".join(said.words),), said.prepositions, said.passive)


def _without(said: Phrase, preposition: str) -> Phrase:
    return Phrase(said.words, tuple(p for p in said.prepositions if p != preposition))


def _variants(said: Phrase) -> Iterator[tuple[Phrase, bool, bool]]:
    """What else says the same, whether with the ends swapped, and whether its words are enough or
    what it joins has to tell."""
    others = tuple(p for p in said.prepositions if p != "@")
    if "by" in said.prepositions:
        if said.passive:
            yield _without(said, "by"), True, True
        return
    if others != said.prepositions:  # the same verb, with or without where and when
        yield Phrase(said.words, others, said.passive), False, False
    if said.passive:
        return
    if not said.prepositions:
        yield Phrase(said.words, ("@",)), False, False
        # who has a leader, has one who is its leader
        yield Phrase(said.words, ("of",)), True, False
    elif said.prepositions == ("of",):
        yield Phrase(said.words), True, False


def _is_a(own: str, wanted: str) -> bool:
    if own == wanted or wanted == f"{v.RDFS}Literal":
        return True
    one, other = (iri.rpartition("#")[2] for iri in (own, wanted))
    if other in _DATES:
        return one in _DATES
    if other in _NUMBERS:
        return one in _WHOLE or (one in _NUMBERS and other not in _WHOLE)
    return other in _TEXTS and one in _TEXTS
