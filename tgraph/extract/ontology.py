"""Ontologies: classes and properties guiding graph construction, with their words.

``read_ontology`` (``tgraph.extract.ontology_reader``) makes an ontology of a file. Here is its
content: class hierarchy, ends of properties, names of both; and which terms of a large ontology
matter for a text."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from tgraph import vocabulary as v
from tgraph.resources import load_tables, word_set

MOST_WORDS = 240
"""Characters of a description that a prompt shows."""


@dataclass(frozen=True, slots=True)
class OntologyClass:
    """An ontology class: label, other names, meaning, parents and disjoint classes."""

    iri: str
    label: str
    names: tuple[str, ...] = ()
    comment: str = ""
    parents: frozenset[str] = frozenset()
    disjoint: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class OntologyProperty:
    """An ontology property.

    Each of ``domains`` and ``ranges`` is a choice of classes, and all choices must hold;
    ``datatypes`` are allowed value datatypes. ``literal`` tells whether values are literals,
    None if unstated."""

    iri: str
    label: str
    names: tuple[str, ...] = ()
    comment: str = ""
    domains: tuple[frozenset[str], ...] = ()
    ranges: tuple[frozenset[str], ...] = ()
    datatypes: frozenset[str] = frozenset()
    literal: bool | None = None
    parents: frozenset[str] = frozenset()
    inverses: frozenset[str] = frozenset()
    functional: bool = False
    inverse_functional: bool = False
    symmetric: bool = False

    @property
    def predicate(self) -> str:
        """Predicate IRI used in knowledge: the property IRI, or a relation IRI made of the
        label if tgraph reserves the namespace."""
        return v.relation_iri(self.label) if self.iri.startswith(_OWN) else self.iri


_OWN = (v.TG, v.RDF, v.RDFS, v.SKOS, v.PROV, v.DCTERMS, v.URN)


OntologyTerm = OntologyClass | OntologyProperty
T = TypeVar("T", OntologyClass, OntologyProperty)


@dataclass(frozen=True)
class Ontology:
    """Classes and properties by IRI.

    ``iris`` are the IRIs of the ontologies combined, ``imports`` the imported ontologies not
    present."""

    classes: Mapping[str, OntologyClass] = field(default_factory=dict)
    properties: Mapping[str, OntologyProperty] = field(default_factory=dict)
    iris: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    has_shapes: bool = False

    def collect_superclasses(self, iri: str) -> frozenset[str]:
        """Return a class plus all superclasses."""
        if iri not in self._superclass_cache:
            superclasses, queue = {iri}, [iri]
            while queue:
                current_class = self.classes.get(queue.pop())
                new_parents = (
                    current_class.parents if current_class else frozenset()
                ) - superclasses
                superclasses |= new_parents
                queue += new_parents
            self._superclass_cache[iri] = frozenset(superclasses)
        return self._superclass_cache[iri]

    @cached_property
    def _superclass_cache(self) -> dict[str, frozenset[str]]:
        return {}

    def are_disjoint(self, first: str, second: str) -> bool:
        """Tell whether two classes exclude common members."""
        first_classes, second_classes = (
            self.collect_superclasses(first),
            self.collect_superclasses(second),
        )
        apart = (self.classes[a].disjoint for a in sorted(first_classes) if a in self.classes)
        back = (self.classes[a].disjoint for a in sorted(second_classes) if a in self.classes)
        return any(d & second_classes for d in apart) or any(d & first_classes for d in back)

    def label(self, iri: str) -> str:
        """Return the label of a class, property or datatype."""
        term = self.classes.get(iri) or self.properties.get(iri)
        if term is None and iri.startswith(v.XSD):
            return iri.removeprefix(v.XSD)
        return term.label if term else local_name(iri)

    def near(self, text: str, limit: int) -> Ontology:
        """Return an ontology of at most ``limit`` classes and properties each, preferring words
        present in the text, then label order.

        An ontology within the limit is returned unchanged."""
        if max(len(self.classes), len(self.properties)) <= limit:
            return self
        present = frozenset(map(base_form, _split_words(text)))
        properties = self._nearest_terms(self.properties, present, limit)
        end_classes = {c for p in properties for choice in (*p.domains, *p.ranges) for c in choice}
        first = [c for c in self.classes.values() if c.iri in end_classes]
        nearest_classes = self._nearest_terms(self.classes, present, limit)
        # a property is of no use without its ends: half of the room is for those
        classes = [*first[: limit // 2], *(c for c in nearest_classes if c.iri not in end_classes)][
            :limit
        ]
        return replace(
            self,
            classes={c.iri: c for c in classes},
            properties={p.iri: p for p in properties},
        )

    def _nearest_terms(
        self, terms: Mapping[str, T], present: frozenset[str], limit: int
    ) -> list[T]:
        def order(term: T) -> tuple[float, str, str]:
            shared_words = self._words_of[term.iri] & present
            return -sum(self._word_rarity[word] for word in shared_words), term.label, term.iri

        return sorted(terms.values(), key=order)[:limit]

    @cached_property
    def _words_of(self) -> dict[str, frozenset[str]]:
        terms: list[OntologyTerm] = [*self.classes.values(), *self.properties.values()]
        return {
            t.iri: frozenset(
                base_form(w) for name in (t.label, *t.names) for w in _split_words(name)
            )
            for t in terms
        }

    @cached_property
    def _word_rarity(self) -> dict[str, float]:
        counts = Counter(word for words in self._words_of.values() for word in words)
        return {word: math.log(1 + len(self._words_of) / n) for word, n in counts.items()}

    def rows(self) -> str:
        """Return classes and properties for a prompt, one JSON object per line, sorted by
        label."""
        term_rows = [*map(self._class_row, _sort_terms(self.classes))]
        term_rows += map(self._property_row, _sort_terms(self.properties))
        return "\n".join(json.dumps(row, ensure_ascii=False) for row in term_rows)

    def _class_row(self, term: OntologyClass) -> dict[str, object]:
        above = sorted(self.classes[p].label for p in term.parents if p in self.classes)
        return _create_row({"class": term.label, "kind of": above}, term)

    def _property_row(self, term: OntologyProperty) -> dict[str, object]:
        ends = {
            "from": self._choice_labels(term.domains),
            "to": self._choice_labels(term.ranges) or sorted(map(self.label, term.datatypes)),
        }
        return _create_row({"property": term.label, **ends}, term)

    def _choice_labels(self, choices: Iterable[frozenset[str]]) -> list[str]:
        return sorted({self.label(iri) for choice in choices for iri in choice})


def _sort_terms(terms: Mapping[str, T]) -> list[T]:
    return sorted(terms.values(), key=lambda term: (term.label, term.iri))


def _create_row(head: dict[str, object], term: OntologyTerm) -> dict[str, object]:
    means = " ".join(term.comment.split())[:MOST_WORDS]
    fields = {**head, "also": list(term.names), "means": means}
    return {name: value for name, value in fields.items() if value}


def combine_ontologies(parts: Sequence[Ontology]) -> Ontology:
    """Return one ontology combining several, merging descriptions of equal classes and
    properties."""
    ontology_iris = {iri for part in parts for iri in part.iris}
    return Ontology(
        _unite_terms(part.classes for part in parts),
        _unite_terms(part.properties for part in parts),
        tuple(sorted(ontology_iris)),
        tuple(sorted({i for part in parts for i in part.imports} - ontology_iris)),
        any(part.has_shapes for part in parts),
    )


def _unite_terms(parts: Iterable[Mapping[str, T]]) -> dict[str, T]:
    terms: dict[str, T] = {}
    for part in parts:
        for iri, term in part.items():
            terms[iri] = _merge_terms(terms[iri], term) if iri in terms else term
    return dict(sorted(terms.items()))


def _merge_terms(one: T, other: T) -> T:
    """Return merged term descriptions, keeping the earlier label and combining further values."""
    values: dict[str, Any] = {}
    for name in type(one).__slots__:
        first: Any = getattr(one, name)
        second: Any = getattr(other, name)
        if name == "names":
            values[name] = _distinct_names([*first, other.label, *second], but=one.label)
        elif isinstance(first, frozenset):
            values[name] = first | second
        elif isinstance(first, tuple):
            values[name] = tuple(dict.fromkeys((*first, *second)))
        else:
            values[name] = first if first not in ("", None, False) else second
    return type(one)(**values)


def _distinct_names(names: Iterable[str], but: str) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(names) if name != but)


# --- words --------------------------------------------------------------------------------------

_CAMEL = re.compile(r"(?<=[a-zà-ÿ0-9])(?=[A-ZÀ-Þ])|(?<=[A-Z])(?=[A-Z][a-z])|[_\-]+")
_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_SILENT, _BE, _NOUNS, _PLACES, _PREPOSITIONS = (
    word_set("ontology", key) for key in ("silent", "be", "nouns", "places", "prepositions")
)
_AT = "@"
"""Stands for any preposition that says where or when."""


@lru_cache(maxsize=1)
def _irregular_forms() -> dict[str, str]:
    families = map(str.split, load_tables("words")["families"].splitlines())
    return {form: family[0] for family in families for form in family[1:] if form not in _NOUNS}


@lru_cache(maxsize=50_000)
def base_form(word: str) -> str:
    """Return an English word's base form, without number and tense endings."""
    word = _irregular_forms().get(word, word)
    if len(word) <= 3 or not word.isascii():
        return word
    word = word.replace("isation", "ization").replace("isational", "izational")
    for suffix, put in (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("sses", "ss")):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return _strip_doubling(word[: len(word) - len(suffix)] + put)
    for suffix in ("ches", "shes", "xes"):
        if word.endswith(suffix):
            return word[:-2]
    return _strip_doubling(word[:-1] if word.endswith("s") and not word.endswith("ss") else word)


def _strip_doubling(word: str) -> str:
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        return word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def _split_words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", _CAMEL.sub(" ", text)).casefold()
    return _WORD.findall(plain)


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words of a name or predicate in base form, without auxiliary words, plus prepositions and
    voice.

    ``passive`` is None if both voices are possible ("built at")."""

    words: tuple[str, ...]
    prepositions: tuple[str, ...] = ()
    passive: bool | None = False

    @property
    def readings(self) -> tuple[Phrase, ...]:
        """The phrase in every possible voice."""
        if self.passive is not None:
            return (self,)
        return tuple(replace(self, passive=passive) for passive in (True, False))


@lru_cache(maxsize=50_000)
def parse_phrase(text: str) -> Phrase:
    """Return text parsed as a phrase."""
    spoken_words = [word for word in _split_words(text) if word not in _SILENT]
    verbal = [word for word in spoken_words if word not in _BE]
    spoken = [_AT if word in _PLACES else word for word in verbal]
    prepositions = tuple(w for w in spoken if w == _AT or w in _PREPOSITIONS)
    content_words = [w for w in spoken if w != _AT and w not in _PREPOSITIONS]
    telling = [w for w in content_words if not (w.endswith("ly") and len(w) > 4)] or content_words
    words = tuple(map(base_form, telling))
    is_participle = bool(words) and (telling[0].endswith("ed") or telling[0] in _irregular_forms())
    if is_participle and len(verbal) < len(spoken_words):
        return Phrase(words, prepositions, True)
    may_be_either = is_participle and prepositions in ((_AT,), ("by",))
    return Phrase(words, prepositions, None if may_be_either else False)


def local_name(iri: str) -> str:
    """Return words at the end of an IRI."""
    last = re.split(r"[/#:]", iri.rstrip("/#"))[-1]
    return " ".join(_split_words(last)) or iri
