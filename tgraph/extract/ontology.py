"""An ontology: the classes and properties by which a graph is to be made, and their words.

``read_ontology`` (``tgraph.extract.ontology_reader``) makes one of a file. Here is what it says:
which class is below which, what a property joins, and how both are called; and which of a large one
matter for a text.
"""

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
from tgraph.resources import tables, word_set

MOST_WORDS = 240
"""Characters of a description that a prompt shows."""


@dataclass(frozen=True, slots=True)
class OntologyClass:
    """A class: its label, its other names, what it means, what it is below and apart from."""

    iri: str
    label: str
    names: tuple[str, ...] = ()
    comment: str = ""
    parents: frozenset[str] = frozenset()
    disjoint: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class OntologyProperty:
    """A property. Each of ``domains`` and ``ranges`` is a choice of classes, and all of them hold;
    ``datatypes`` are those that a value may have. ``literal`` tells whether values are literals,
    None where nothing says so."""

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
        """The predicate of its statements in knowledge: itself; a relation by its label where its
        namespace is one in which tgraph says what it says itself."""
        return v.relation_iri(self.label) if self.iri.startswith(_OWN) else self.iri


_OWN = (v.TG, v.RDF, v.RDFS, v.SKOS, v.PROV, v.DCTERMS, v.URN)


Named = OntologyClass | OntologyProperty
T = TypeVar("T", OntologyClass, OntologyProperty)


@dataclass(frozen=True)
class Ontology:
    """Classes and properties by IRI. ``iris`` name the ontologies that it is made of, ``imports``
    what these import and is not there."""

    classes: Mapping[str, OntologyClass] = field(default_factory=dict)
    properties: Mapping[str, OntologyProperty] = field(default_factory=dict)
    iris: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    has_shapes: bool = False

    def above(self, iri: str) -> frozenset[str]:
        """The class and all classes that it is below."""
        if iri not in self._above:
            found, queue = {iri}, [iri]
            while queue:
                known = self.classes.get(queue.pop())
                more = (known.parents if known else frozenset()) - found
                found |= more
                queue += more
            self._above[iri] = frozenset(found)
        return self._above[iri]

    @cached_property
    def _above(self) -> dict[str, frozenset[str]]:
        return {}

    def are_disjoint(self, first: str, second: str) -> bool:
        """Whether nothing can be of both classes."""
        one, other = self.above(first), self.above(second)
        apart = (self.classes[a].disjoint for a in sorted(one) if a in self.classes)
        back = (self.classes[a].disjoint for a in sorted(other) if a in self.classes)
        return any(d & other for d in apart) or any(d & one for d in back)

    def label(self, iri: str) -> str:
        """What a class, property or datatype is called."""
        known = self.classes.get(iri) or self.properties.get(iri)
        if known is None and iri.startswith(v.XSD):
            return iri.removeprefix(v.XSD)
        return known.label if known else local_name(iri)

    def near(self, text: str, limit: int) -> Ontology:
        """At most ``limit`` classes and as many properties, those whose words stand in the text
        first, then in the order of their labels; all of them where there are no more."""
        if max(len(self.classes), len(self.properties)) <= limit:
            return self
        present = frozenset(map(base, _words(text)))
        properties = self._nearest(self.properties, present, limit)
        wanted = {c for p in properties for choice in (*p.domains, *p.ranges) for c in choice}
        first = [c for c in self.classes.values() if c.iri in wanted]
        named = self._nearest(self.classes, present, limit)
        # a property is of no use without its ends: half of the room is for those
        classes = [*first[: limit // 2], *(c for c in named if c.iri not in wanted)][:limit]
        return replace(
            self,
            classes={c.iri: c for c in classes},
            properties={p.iri: p for p in properties},
        )

    def _nearest(self, terms: Mapping[str, T], present: frozenset[str], limit: int) -> list[T]:
        def order(term: T) -> tuple[float, str, str]:
            found = self._words_of[term.iri] & present
            return -sum(self._rarity[word] for word in found), term.label, term.iri

        return sorted(terms.values(), key=order)[:limit]

    @cached_property
    def _words_of(self) -> dict[str, frozenset[str]]:
        terms: list[Named] = [*self.classes.values(), *self.properties.values()]
        return {
            t.iri: frozenset(base(w) for name in (t.label, *t.names) for w in _words(name))
            for t in terms
        }

    @cached_property
    def _rarity(self) -> dict[str, float]:
        counts = Counter(word for words in self._words_of.values() for word in words)
        return {word: math.log(1 + len(self._words_of) / n) for word, n in counts.items()}

    def rows(self) -> str:
        """Its classes and properties for a prompt, a JSON object to a line, by label."""
        shown = [*map(self._class_row, _sorted(self.classes))]
        shown += map(self._property_row, _sorted(self.properties))
        return "\n".join(json.dumps(row, ensure_ascii=False) for row in shown)

    def _class_row(self, term: OntologyClass) -> dict[str, object]:
        above = sorted(self.classes[p].label for p in term.parents if p in self.classes)
        return _row({"class": term.label, "kind of": above}, term)

    def _property_row(self, term: OntologyProperty) -> dict[str, object]:
        ends = {
            "from": self._choice(term.domains),
            "to": self._choice(term.ranges) or sorted(map(self.label, term.datatypes)),
        }
        return _row({"property": term.label, **ends}, term)

    def _choice(self, choices: Iterable[frozenset[str]]) -> list[str]:
        return sorted({self.label(iri) for choice in choices for iri in choice})


def _sorted(terms: Mapping[str, T]) -> list[T]:
    return sorted(terms.values(), key=lambda term: (term.label, term.iri))


def _row(head: dict[str, object], term: Named) -> dict[str, object]:
    means = " ".join(term.comment.split())[:MOST_WORDS]
    found = {**head, "also": list(term.names), "means": means}
    return {name: value for name, value in found.items() if value}


def combine(parts: Sequence[Ontology]) -> Ontology:
    """One ontology of several: what they say of the same class or property is put together."""
    known = {iri for part in parts for iri in part.iris}
    return Ontology(
        _united(part.classes for part in parts),
        _united(part.properties for part in parts),
        tuple(sorted(known)),
        tuple(sorted({i for part in parts for i in part.imports} - known)),
        any(part.has_shapes for part in parts),
    )


def _united(parts: Iterable[Mapping[str, T]]) -> dict[str, T]:
    found: dict[str, T] = {}
    for part in parts:
        for iri, term in part.items():
            found[iri] = _merged(found[iri], term) if iri in found else term
    return dict(sorted(found.items()))


def _merged(one: T, other: T) -> T:
    """Two descriptions of one term: the label of the first, and what either has beside it."""
    values: dict[str, Any] = {}
    for name in type(one).__slots__:
        first: Any = getattr(one, name)
        second: Any = getattr(other, name)
        if name == "names":
            values[name] = _distinct([*first, other.label, *second], but=one.label)
        elif isinstance(first, frozenset):
            values[name] = first | second
        elif isinstance(first, tuple):
            values[name] = tuple(dict.fromkeys((*first, *second)))
        else:
            values[name] = first if first not in ("", None, False) else second
    return type(one)(**values)


def _distinct(names: Iterable[str], but: str) -> tuple[str, ...]:
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
def _irregular() -> dict[str, str]:
    families = map(str.split, tables("words")["families"].splitlines())
    return {form: family[0] for family in families for form in family[1:] if form not in _NOUNS}


@lru_cache(maxsize=50_000)
def base(word: str) -> str:
    """The base of an English word: without the endings of number and tense."""
    word = _irregular().get(word, word)
    if len(word) <= 3 or not word.isascii():
        return word
    word = word.replace("isation", "ization").replace("isational", "izational")
    for suffix, put in (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("sses", "ss")):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return _undoubled(word[: len(word) - len(suffix)] + put)
    for suffix in ("ches", "shes", "xes"):
        if word.endswith(suffix):
            return word[:-2]
    return _undoubled(word[:-1] if word.endswith("s") and not word.endswith("ss") else word)


def _undoubled(word: str) -> str:
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        return word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", _CAMEL.sub(" ", text)).casefold()
    return _WORD.findall(plain)


@dataclass(frozen=True, slots=True)
class Phrase:
    """The words of a name or predicate in their base forms, without those that only help, its
    prepositions, and its voice: ``passive`` is None where it may be either ("built at")."""

    words: tuple[str, ...]
    prepositions: tuple[str, ...] = ()
    passive: bool | None = False

    @property
    def readings(self) -> tuple[Phrase, ...]:
        """The phrase in each voice that it may be in."""
        if self.passive is not None:
            return (self,)
        return tuple(replace(self, passive=passive) for passive in (True, False))


@lru_cache(maxsize=50_000)
def phrase(text: str) -> Phrase:
    """The text as a phrase."""
    said = [word for word in _words(text) if word not in _SILENT]
    verbal = [word for word in said if word not in _BE]
    spoken = [_AT if word in _PLACES else word for word in verbal]
    prepositions = tuple(w for w in spoken if w == _AT or w in _PREPOSITIONS)
    others = [w for w in spoken if w != _AT and w not in _PREPOSITIONS]
    telling = [w for w in others if not (w.endswith("ly") and len(w) > 4)] or others
    words = tuple(map(base, telling))
    is_participle = bool(words) and (telling[0].endswith("ed") or telling[0] in _irregular())
    if is_participle and len(verbal) < len(said):
        return Phrase(words, prepositions, True)
    may_be_either = is_participle and prepositions in ((_AT,), ("by",))
    return Phrase(words, prepositions, None if may_be_either else False)


def local_name(iri: str) -> str:
    """The words at the end of an IRI."""
    last = re.split(r"[/#:]", iri.rstrip("/#"))[-1]
    return " ".join(_words(last)) or iri
