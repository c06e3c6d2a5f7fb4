"""Ontology fit of extracted knowledge: entity classes and edge properties.

The fit is a function of the evidence and the ontology alone, so changing the ontology needs no
new reading: names and predicates stay in the evidence as in the texts, and knowledge contains
the ontology's terms instead. Words are compared by base forms; further meanings, such as
equivalent verbs, must be stated by the ontology (``skos:altLabel``)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.extract.entity_types import kind_of_noun
from tgraph.extract.ontology import Ontology, OntologyProperty, Phrase, parse_phrase
from tgraph.index.standing_knowledge import Properties, commonest_value, type_of
from tgraph.resources import load_tables, word_set

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
    """The ontology class of an entity (empty: none), or the reason for lying outside the
    ontology.

    ``how`` is ``kept`` if the entity's own type was the class, or ``retyped`` if the type means
    the class."""

    iri: str = ""
    how: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EdgeFit:
    """The knowledge triple of an edge, plus the reason for lying outside the ontology.

    ``how`` is ``kept`` if the edge's own predicate was a property, or ``retyped`` if the
    predicate means a property."""

    triple: Triple
    how: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StatementEnd:
    """A statement end: predicate, position in the statement, and whether the opposite end is a
    literal."""

    predicate: str
    is_subject: bool
    is_valued: bool


def ends_of(entities: Collection[str], triple: Triple) -> Iterator[StatementEnd]:
    """Yield triple ends that denote any of the entities."""
    is_valued = isinstance(triple.object, Literal)
    for node, is_subject in ((triple.subject, True), (triple.object, False)):
        if isinstance(node, NamedNode) and node.value in entities:
            yield StatementEnd(triple.predicate.value, is_subject, is_valued)


EntityFits = Callable[[str], EntityFit]
"""How an entity fits, by its canonical name."""

_FITS = EntityFit()


class OntologyFit:
    """A matcher fitting entities and edges to an ontology.

    ``key`` distinguishes the results from other fitters' results; ``strict`` excludes entities
    and edges outside the ontology from knowledge."""

    def __init__(self, ontology: Ontology, *, strict: bool = False, key: str = "") -> None:
        self.ontology = ontology
        self.strict = strict
        self.key = v.digest_parts(VERSION, key, str(strict))

    # --- entities ---

    def entity(
        self, evidence: Sequence[Properties], stated: Callable[[], Iterable[StatementEnd]] = tuple
    ) -> EntityFit:
        """Return the ontology class of an entity, given the evidence.

        If the types mean several classes, the class that fits most ``stated`` ends is chosen,
        then the commonest. A class meant by the noun of the entity's name is chosen where the
        noun is more specific."""
        if not self.ontology.classes:
            return _FITS
        fit_by_class = dict(filter(None, map(self._of_type, reversed(_evidence_types(evidence)))))
        class_iris = [*reversed(fit_by_class)]
        if len(class_iris) > 1:
            ends = list(stated())
            class_iris.sort(key=lambda iri: -sum(self._fits_class(iri, end) for end in ends))
        by_type = class_iris[0] if class_iris else ""
        how = fit_by_class.get(by_type, "")
        by_name = self._of_name(commonest_value(evidence, "name"))
        if by_name and (not by_type or by_type in self.ontology.collect_superclasses(by_name)):
            return EntityFit(by_name, how if by_name == by_type else RETYPED)
        return EntityFit(by_type, how, "" if by_type else UNKNOWN_TYPE)

    def _fits_class(self, iri: str, end: StatementEnd) -> bool:
        """Return whether an entity with the statement end may belong to the class, judged by
        properties meant by the predicate."""
        for name, swapped, sure in self._property_candidates(end.predicate):
            ontology_property = self.ontology.properties[name]
            if sure and not (end.is_valued and (swapped or ontology_property.literal is False)):
                is_subject = end.is_subject != swapped
                choices = (
                    self._property_domains(ontology_property)
                    if is_subject
                    else self._property_ranges(ontology_property)
                )
                if choices:
                    return all(
                        choice & self.ontology.collect_superclasses(iri) for choice in choices
                    )
        return False

    def classes_of(self, evidence: Sequence[Properties]) -> dict[str, str]:
        """Return every class stated by evidence, with the type meaning the class."""
        type_by_class: dict[str, str] = {}
        for kind in _evidence_types(evidence):
            if class_fit := self._of_type(kind):
                type_by_class.setdefault(class_fit[0], kind)
        return type_by_class

    def _of_type(self, kind: str) -> tuple[str, str] | None:
        """Return the class meant by a type, plus the match kind."""
        if kind in self.ontology.classes:
            return kind, KEPT
        type_phrase = parse_phrase(kind)
        if class_iri := self._class_named(type_phrase):
            return class_iri, KEPT if self.ontology.label(
                class_iri
            ).casefold() == kind.casefold() else RETYPED
        for synonym in _related_types(kind):
            if class_iri := self._class_named(parse_phrase(synonym)):
                return class_iri, RETYPED
        return None

    def _of_name(self, name: str) -> str:
        """Return the class meant by a name's head noun: ``Nimrod Expedition``, ``Bay of
        Whales``."""
        words = name.split()
        if len(words) < 2:
            return ""
        noun = words[words.index("of") - 1] if "of" in words[1:] else words[-1]
        return self._class_named(parse_phrase(noun))

    def _class_named(self, said: Phrase) -> str:
        return self._classes_by_name.get(_join_phrase(said), "")

    @cached_property
    def _classes_by_name(self) -> Mapping[str, str]:
        """Class IRIs by class name; labels take precedence."""
        iri_by_name: dict[str, str] = {}
        terms = sorted(self.ontology.classes.values(), key=lambda term: term.iri)
        for term in terms:
            iri_by_name.setdefault(_join_phrase(parse_phrase(term.label)), term.iri)
        for term in terms:
            for name in term.names:
                iri_by_name.setdefault(_join_phrase(parse_phrase(name)), term.iri)
        iri_by_name.pop("", None)
        return iri_by_name

    # --- edges ---

    def edge(self, triple: Triple, fits: EntityFits) -> EdgeFit:
        """Return the knowledge triple of a triple with canonical names.

        Among properties possibly meant by the predicate, the first with matching domain and
        range is chosen; if no property matches, the triple stays unchanged."""
        ends = _Ends(triple, fits)
        if not self.ontology.properties:
            return EdgeFit(triple, reason=ends.unknown)
        first = ""
        for ontology_property, swapped, sure in self._matching_properties(triple.predicate.value):
            if swapped and ends.is_literal:
                continue
            subject, obj = ends.order_ends(triple, swapped)
            reason = self._find_violation(ontology_property, subject, obj, fits)
            if not reason and (sure or not ends.unknown):
                node = NamedNode(ontology_property.predicate)
                same = node == triple.predicate or _is_label(
                    triple.predicate.value, ontology_property
                )
                how = KEPT if same and not swapped else RETYPED
                if ends.unknown and self.strict:
                    return EdgeFit(triple, how, ends.unknown)
                return EdgeFit(Triple(subject, node, obj), how, ends.unknown)
            first = first or reason
        return EdgeFit(triple, reason=first or UNKNOWN_PROPERTY)

    def find_property(self, triple: Triple) -> OntologyProperty | None:
        """Return the first property possibly meant by the predicate, ignoring whether the ends
        fit."""
        candidates = self._matching_properties(triple.predicate.value)
        return next((candidate for candidate, _, _ in candidates), None)

    def ends_of(
        self, known: OntologyProperty
    ) -> tuple[tuple[frozenset[str], ...], tuple[frozenset[str], ...]]:
        """Return domains and ranges of a property, inherited from parent properties if
        undefined."""
        return self._property_domains(known), self._property_ranges(known)

    def label(self, predicate: str) -> str:
        """Return the property label for a predicate; empty for unknown predicates."""
        ontology_property = self._by_predicate.get(predicate)
        return ontology_property.label if ontology_property else ""

    def _matching_properties(self, predicate: str) -> Iterator[tuple[OntologyProperty, bool, bool]]:
        """Yield properties possibly meant by a predicate, with two flags: ends swapped, and
        words sufficient regardless of the ends."""
        previous_pairs: set[tuple[str, bool]] = set()
        for iri, swapped, sure in self._property_candidates(predicate):
            ontology_property = self.ontology.properties[iri]
            if (iri, swapped) not in previous_pairs:
                previous_pairs.add((iri, swapped))
                yield ontology_property, swapped, sure
            if sure:  # what it says of the one, its inverse says of the other
                for inverse in sorted(ontology_property.inverses & self.ontology.properties.keys()):
                    if (inverse, not swapped) not in previous_pairs:
                        previous_pairs.add((inverse, not swapped))
                        yield self.ontology.properties[inverse], not swapped, False

    def _property_candidates(self, predicate: str) -> Iterator[tuple[str, bool, bool]]:
        if ontology_property := self._by_predicate.get(predicate):
            yield ontology_property.iri, False, True
        readings = parse_phrase(_predicate_words(predicate)).readings
        for reading in readings:
            for iri, swapped in self._properties_by_phrase[reading]:
                yield iri, swapped, True
        for reading in readings:
            for variant, turned, sure in _phrase_variants(reading):
                for iri, swapped in self._properties_by_phrase[variant]:
                    yield iri, swapped != turned, sure

    @cached_property
    def _by_predicate(self) -> Mapping[str, OntologyProperty]:
        return {p.predicate: p for p in reversed([*self.ontology.properties.values()])}

    @cached_property
    def _properties_by_phrase(self) -> Mapping[Phrase, list[tuple[str, bool]]]:
        """Properties by phrase, labels first; passive phrases also by verb, with swapped ends."""
        property_index: defaultdict[Phrase, list[tuple[str, bool]]] = defaultdict(list)
        terms = sorted(self.ontology.properties.values(), key=lambda term: term.iri)
        named_terms = [(term, term.label) for term in terms]
        named_terms += [(term, name) for term in terms for name in term.names]
        readings = [
            (term.iri, reading)
            for term, name in named_terms
            for reading in parse_phrase(name).readings
            if reading.words
        ]
        for iri, reading in readings:
            _append_missing(property_index[reading], (iri, False))
            _append_missing(property_index[_compound_phrase(reading)], (iri, False))
        for iri, reading in readings:
            if "by" in reading.prepositions and reading.passive:
                _append_missing(property_index[_remove_preposition(reading, "by")], (iri, True))
        property_index.default_factory = None
        return _PropertyIndex(property_index)

    # --- what a property joins ---

    def _find_violation(
        self,
        known: OntologyProperty,
        subject: NamedNode,
        obj: NamedNode | Literal,
        fits: EntityFits,
    ) -> str:
        if not all(self._is_of(subject, choice, fits) for choice in self._property_domains(known)):
            return DOMAIN
        if isinstance(obj, Literal):
            return "" if self._accepts_literal(known, obj) else RANGE
        if known.literal:
            return RANGE
        ranges = all(self._is_of(obj, choice, fits) for choice in self._property_ranges(known))
        return "" if ranges else RANGE

    def _property_domains(self, known: OntologyProperty) -> tuple[frozenset[str], ...]:
        """Return a property's domains: own, inherited from parents, or else the ranges of
        inverse properties."""
        return self._inherited_classes(known, "domains") or self._of_inverses(known, "ranges")

    def _property_ranges(self, known: OntologyProperty) -> tuple[frozenset[str], ...]:
        return self._inherited_classes(known, "ranges") or self._of_inverses(known, "domains")

    def _of_inverses(self, known: OntologyProperty, name: str) -> tuple[frozenset[str], ...]:
        inverse_properties = (self.ontology.properties.get(iri) for iri in sorted(known.inverses))
        return next(
            (f for o in inverse_properties if o and (f := self._inherited_classes(o, name))), ()
        )

    def _inherited_classes(self, known: OntologyProperty, name: str) -> tuple[frozenset[str], ...]:
        visited_iris, queue = {known.iri}, [known]
        while queue:
            ancestor = queue.pop(0)
            classes: tuple[frozenset[str], ...] = getattr(ancestor, name)
            if classes:
                return classes
            above = (
                self.ontology.properties.get(iri) for iri in sorted(ancestor.parents - visited_iris)
            )
            queue += filter(None, above)
            visited_iris |= ancestor.parents
        return ()

    def _is_of(self, entity: NamedNode, choice: frozenset[str], fits: EntityFits) -> bool:
        """Return whether the entity's class is compatible with a class in ``choice``; unknown
        classes never contradict."""
        known_classes = choice & self.ontology.classes.keys()
        iri = fits(entity.value).iri
        return (
            not known_classes
            or not iri
            or not known_classes.isdisjoint(self.ontology.collect_superclasses(iri))
        )

    def _accepts_literal(self, known: OntologyProperty, value: Literal) -> bool:
        """Return whether the literal is a valid property value.

        Valid literals have the datatype, or a less exact datatype of the same meaning, such as
        the year of a date."""
        if known.literal is False or (known.ranges and not known.datatypes):
            return False
        value_type = value.datatype.value
        return not known.datatypes or any(
            _is_a(value_type, datatype) for datatype in known.datatypes
        )


def _evidence_types(evidence: Sequence[Properties]) -> list[str]:
    """Return types stated by evidence: the prevailing type first, then by frequency."""
    counts = Counter(term.value for item in evidence for term in item.get("entityType", ()))
    sorted_types = sorted(counts, key=lambda kind: (-counts[kind], kind))
    return list(dict.fromkeys(filter(None, [type_of(evidence), *sorted_types])))


def _related_types(kind: str) -> Iterator[str]:
    """Yield types related to a type: types denoted by the noun, synonyms, and broader types."""
    data = load_tables("entity_types")
    noun = parse_phrase(kind).words[-1:]
    plain = [kind.lower(), *noun]
    denoted = [denoted_kind for word in plain if (denoted_kind := kind_of_noun(word))]
    type_words = dict.fromkeys([*plain, *denoted])
    yield from denoted
    for type_word in type_words:
        yield from data["synonyms"].get(type_word, "").split()
    for type_word in type_words:
        for above in data["broader"].get(type_word, "").split():
            yield above
            yield from data["synonyms"].get(above, "").split()


class _Ends:
    """Triple ends with ontology fit."""

    def __init__(self, triple: Triple, fits: EntityFits) -> None:
        nodes = [n for n in (triple.subject, triple.object) if isinstance(n, NamedNode)]
        self.is_literal = isinstance(triple.object, Literal)
        outside = (fits(node.value).reason for node in nodes)
        self.unknown = next(filter(None, outside), "")

    def order_ends(self, triple: Triple, swapped: bool) -> tuple[NamedNode, NamedNode | Literal]:
        subject, obj = triple.subject, triple.object
        assert isinstance(subject, NamedNode)
        assert isinstance(obj, NamedNode | Literal)
        if swapped:
            assert isinstance(obj, NamedNode)
            return obj, subject
        return subject, obj


class _PropertyIndex(dict[Phrase, list[tuple[str, bool]]]):
    """A property index returning an empty list for missing phrases."""

    def __missing__(self, key: Phrase) -> list[tuple[str, bool]]:
        return []


def _append_missing(items: list[tuple[str, bool]], item: tuple[str, bool]) -> None:
    if item not in items:
        items.append(item)


def _predicate_words(predicate: str) -> str:
    """Return the words of a predicate IRI."""
    prefix = v.relation_iri("")
    if predicate.startswith(prefix):
        return unquote(predicate.removeprefix(prefix)).replace("-", " ")
    return predicate.rpartition("#")[2].rpartition("/")[2]


def _is_label(predicate: str, known: OntologyProperty) -> bool:
    return predicate == v.relation_iri(known.label)


def _join_phrase(said: Phrase) -> str:
    return "".join((*said.prepositions, *said.words))


def _compound_phrase(said: Phrase) -> Phrase:
    """``birthplace`` for ``birth place``."""
    return Phrase(("".join(said.words),), said.prepositions, said.passive)


def _remove_preposition(said: Phrase, preposition: str) -> Phrase:
    return Phrase(said.words, tuple(p for p in said.prepositions if p != preposition))


def _phrase_variants(said: Phrase) -> Iterator[tuple[Phrase, bool, bool]]:
    """Yield equivalent phrases with two flags: ends swapped, and words sufficient regardless of
    the ends."""
    kept_prepositions = tuple(p for p in said.prepositions if p != "@")
    if "by" in said.prepositions:
        if said.passive:
            yield _remove_preposition(said, "by"), True, True
        return
    if kept_prepositions != said.prepositions:  # the same verb, with or without where and when
        yield Phrase(said.words, kept_prepositions, said.passive), False, False
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
    own_type, wanted_type = (iri.rpartition("#")[2] for iri in (own, wanted))
    if wanted_type in _DATES:
        return own_type in _DATES
    if wanted_type in _NUMBERS:
        return own_type in _WHOLE or (own_type in _NUMBERS and wanted_type not in _WHOLE)
    return wanted_type in _TEXTS and own_type in _TEXTS
