"""Chunk entities under all names, with stated facts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pyoxigraph import Literal

from tgraph.extract.entity_types import gender_of_name, is_title, without_title
from tgraph.model import CellPlace, ExtractedEntity, Segment, Span
from tgraph.vocabulary import normalise_name

UNKNOWN = "thing"
MENTIONS = "mentions"
WEAK = 2.0
_MAY_BE_PERSON = ("person", UNKNOWN, "organization", "product", "work")
_EPITHETS = frozenset({"old", "young", "poor", "dear", "little"})
_EDGES = " \t.,;:!?\"'“”‘’()[]"


@dataclass(slots=True, eq=False)
class NamedEntity:
    """An entity under construction: canonical name, observed types, aliases and describing
    nouns."""

    name: str
    types: Counter[str] = field(default_factory=Counter)
    aliases: dict[str, None] = field(default_factory=dict)
    classes: dict[str, None] = field(default_factory=dict)
    nouns: set[str] = field(default_factory=set)
    gender: str = ""
    mentions: int = 0
    located: bool = False
    iri: str = ""
    """The IRI of what its place identifies, not its name."""

    @property
    def type(self) -> str:
        specific_types = [kind for kind in self.types if kind != UNKNOWN]
        return max(specific_types, key=self.types.__getitem__, default=UNKNOWN)

    @property
    def is_person(self) -> bool:
        return self.type == "person"

    def to_extracted(self, kind: str, span: Span | None) -> ExtractedEntity:
        """Return the extracted entity for a chunk."""
        aliases = tuple(alias for alias in self.aliases if alias != self.name)
        return ExtractedEntity(
            self.name,
            kind,
            aliases=aliases,
            span=span,
            classes=tuple(self.classes),
            iri=self.iri,
        )


class NameTable:
    """Entity lookup for a chunk, by any known name.

    A shorter name joins a longer name if exactly one fits: "Captain Scott" and "Scott" join
    "Robert Falcon Scott", "Mrs. Cratchit" does not join "Bob Cratchit". Acronyms join by
    ``same``."""

    def __init__(self) -> None:
        self._by_key: dict[str, NamedEntity] = {}
        self._counts: dict[str, Counter[str]] = {}

    def __iter__(self) -> Iterator[NamedEntity]:
        return iter(dict.fromkeys(self._by_key.values()))

    def add(self, text: str, kind: str, *, located: bool = False) -> None:
        """Record a name found in the text; ``link`` must follow before ``find``.

        ``located`` marks a name at a place position ("in ..."), which is no short name of a
        person."""
        key = _name_key(text)
        if key:
            self._counts.setdefault(key, Counter())[_tidy_name(text)] += 1
            entity = self._by_key.setdefault(key, NamedEntity(""))
            entity.types[kind] += 1
            entity.located = entity.located or located

    def link(self) -> None:
        """Chooses spellings and joins short names to long ones."""
        for key, spellings in self._counts.items():
            entity = self._by_key[key]
            entity.mentions = spellings.total()
            spelling = min(spellings, key=lambda s: (s.isupper() and len(s) > 4, -spellings[s], s))
            entity.name = without_title(spelling)
            entity.gender = gender_of_name(spelling)
            if entity.name != spelling:
                entity.aliases[spelling] = None
        people = {key: entity for key, entity in self._by_key.items() if _may_be_person(entity)}
        for key in sorted(people, key=lambda k: (-len(k.split()), k)):
            if longer := self._longer_person(key, people):
                self._join_names(key, longer)
        for entity in self:
            first, _, bare_name = entity.name.partition(" ")
            if first.lower() in _EPITHETS and bare_name in entity.aliases:
                entity.aliases.pop(bare_name)
                entity.aliases[entity.name], entity.name = None, bare_name

    def find(self, text: str) -> NamedEntity | None:
        return self._by_key.get(_name_key(text))

    def find_or_create(self, text: str, kind: str) -> NamedEntity:
        """Return the entity matching a name, creating new entities when needed."""
        entity = self.find(text)
        if entity is None:
            entity = NamedEntity(_tidy_name(text), Counter({kind: 1}), mentions=1)
            self._by_key[_name_key(text)] = entity
        return entity

    def record_alias(self, text: str, alias: str) -> None:
        """Record an entity's alias stated by the text, as in "... Expedition (BAE)"."""
        entity = self.find(text)
        if entity is None or not _name_key(alias):
            return
        alias_entity = self.find(alias)
        if alias_entity is not None and alias_entity is not entity:
            if alias_entity.name == alias:  # else somebody else has it by now
                self._join_names(_name_key(alias), entity)
        elif alias_entity is None:
            self._by_key[_name_key(alias)] = entity
            entity.aliases[_tidy_name(alias)] = None

    def _longer_person(self, key: str, people: dict[str, NamedEntity]) -> NamedEntity | None:
        words, short = _untitled_words(key), self._by_key[key]
        single = len(words) == 1 and not short.name.isupper()
        if not words or len(words) > 2 or not (single or short.is_person):
            return None
        fits = {
            id(entity): entity
            for person_key, entity in people.items()
            if entity is not short
            and entity.is_person
            and _looks_personal(entity.name)
            and _extends_name(_untitled_words(person_key), words)
        }
        person = next(iter(fits.values())) if len(fits) == 1 else None
        clash = person and short.gender and person.gender and short.gender != person.gender
        return None if clash else person

    def _join_names(self, key: str, entity: NamedEntity) -> None:
        joined = self._by_key[key]
        for name, target in list(self._by_key.items()):
            if target is joined:
                self._by_key[name] = entity
        entity.aliases |= {joined.name: None} | joined.aliases
        entity.aliases.pop(entity.name, None)
        entity.mentions += joined.mentions
        entity.nouns |= joined.nouns
        entity.gender = entity.gender or joined.gender
        entity.types.update({kind: n for kind, n in joined.types.items() if kind == entity.type})


def acronym_of(short: str, name: str) -> bool:
    """Whether capitals stand for a name: "BAE" for "British Antarctic Expedition"."""
    letters = [c for c in short if c.isalpha()]
    if not 2 <= len(letters) <= 8 or sum(c.isupper() for c in letters) < len(letters) - 1:
        return False
    initials = "".join(word[0] for word in re.findall(r"[^\W\d_]+", name) if word[0].isupper())
    return "".join(letters).upper() == initials.upper()


def _may_be_person(entity: NamedEntity) -> bool:
    return entity.type in _MAY_BE_PERSON or (entity.type == "place" and not entity.located)


def _looks_personal(name: str) -> bool:
    words = name.split()
    return len(words) <= 5 and not any(c.isdigit() or c in ",:;|/" for c in name)


def _extends_name(long: list[str], short: list[str]) -> bool:
    if len(long) <= len(short):
        return False
    if len(short) == 1:
        # Nobody is called by the place alone that their name names: "Richard of Normandy".
        return short[0] == long[0] or (short[0] == long[-1] and "of" not in long)
    return long[-len(short) :] == short or (long[0], long[-1]) == (short[0], short[-1])


def _untitled_words(key: str) -> list[str]:
    words = key.split()
    return [word for place, word in enumerate(words) if place or not is_title(word)] or words


def _name_key(text: str) -> str:
    words = normalise_name(text).strip(_EDGES).removesuffix("'s").removesuffix("’s").split()
    return " ".join(words[1:] if len(words) > 1 and words[0] in ("the", "a", "an") else words)


def _tidy_name(text: str) -> str:
    name = " ".join(text.split()).strip(' \t,;:!?"“”‘[]')
    name = re.sub(r"( [IVX]+)\.$", r"\1", name)
    if name.count("(") != name.count(")") or name.startswith("("):
        name = name.strip("() ")
    return name.removesuffix("'s").removesuffix("’s")


Argument = NamedEntity | Literal


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A stated fact with its sentence as positions in the block text."""

    subject: NamedEntity
    predicate: str
    object: Argument
    strength: float
    block: Segment
    start: int
    end: int
    cell: CellPlace | None = None


@dataclass(slots=True)
class ChunkReading:
    """A chunk's contents: facts in order, earliest mentions, and counts of dropped statements
    by reason."""

    names: NameTable
    facts: list[StatedFact] = field(default_factory=list)
    first: dict[int, tuple[Segment, int, int]] = field(default_factory=dict)
    found: list[NamedEntity] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)

    def record_mention(
        self, entity: NamedEntity, block: Segment, start: int, end: int
    ) -> NamedEntity:
        """Record a mention; the earliest mention becomes the entity's place."""
        if id(entity) not in self.first:
            self.first[id(entity)] = block, start, end
            self.found.append(entity)
        return entity

    def join_names(self) -> None:
        """Redirect facts to joined entities, for names joined after being stated."""
        facts = []
        for fact in self.facts:
            subject, obj = self._current_entity(fact.subject), fact.object
            obj = self._current_entity(obj) if isinstance(obj, NamedEntity) else obj
            if subject is not obj:
                facts.append(replace(fact, subject=subject, object=obj))
        self.facts = facts
        entities, self.found = self.found, []
        first, self.first = self.first, {}
        for entity in entities:
            self.record_mention(self._current_entity(entity), *first[id(entity)])

    def _current_entity(self, entity: NamedEntity) -> NamedEntity:
        return self.names.find(entity.name) or entity

    def state(
        self,
        subject: NamedEntity | None,
        predicate: str,
        obj: Argument,
        strength: float,
        block: Segment,
        span: tuple[int, int] | None = None,
        cell: CellPlace | None = None,
    ) -> None:
        """Add a fact, spanning the entire block by default.

        Facts without subject, or with subject equal to object, are ignored."""
        if subject is not None and subject is not obj:
            start, end = span or (0, len(block.text))
            self.facts.append(
                StatedFact(subject, predicate, obj, strength, block, start, end, cell)
            )
