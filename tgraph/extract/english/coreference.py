"""Whom a pronoun or a definite noun means: the nearest compatible entity before it.

Candidates come from the same sentence and the three before it; subjects of earlier sentences come
first, which is the simplest form of salience (Hobbs 1978, Lappin and Leass 1994). What is said in
quotation marks has its own candidates: a name in somebody's mouth is not who "he" of the narration
is. Where nothing fits, or somebody without a name fits first, the statement is dropped: a wrong
name is worse than none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tgraph.extract.english.beings import ANIMAL, FEMALE, MALE, gender_of_noun
from tgraph.extract.english.parser import lemma
from tgraph.extract.entity_types import kind_of_noun
from tgraph.extract.facts import UNKNOWN, NamedEntity

if TYPE_CHECKING:
    from spacy.tokens import Token

_NEUTER = frozenset({"it", "its", "itself"})
_PLURAL = frozenset({"they", "them", "their", "theirs", "themselves"})
THIRD_PERSON = MALE | FEMALE | _NEUTER | _PLURAL
_DEFINITE = frozenset({"the", "this", "that"})
_ANYBODY = frozenset({"person", "people"})
_WINDOW = 3
_NOUN_WINDOW = 8
_COLLECTIVE = frozenset({"organization", "group"})
_SUBJECTS = frozenset({"nsubj", "nsubjpass"})
_ONE_VERB = frozenset({"conj", "xcomp"})


@dataclass(frozen=True, slots=True)
class Seen:
    """One mention that later ones may refer to: in which sentence, where, and in which role (2 for
    the subject of the sentence, 1 for another's, else 0)."""

    sentence: int
    position: int
    entity: NamedEntity
    role: int
    clause: int
    spoken: bool

    @property
    def is_subject(self) -> bool:
        return self.role > 0


class Discourse:
    """What a chunk has talked about so far, in order."""

    def __init__(self, topic: NamedEntity | None) -> None:
        self._topic = topic
        self._seen: list[Seen] = []
        self._together: tuple[int, tuple[NamedEntity, ...]] | None = None
        self._sentence = 0
        self._unnamed = -1

    def next_sentence(self) -> None:
        self._sentence += 1
        oldest = self._sentence - _NOUN_WINDOW
        if self._seen and self._seen[0].sentence < oldest - _NOUN_WINDOW:
            self._seen = [seen for seen in self._seen if seen.sentence >= oldest]

    def see(self, token: Token, entity: NamedEntity, spoken: bool = False) -> None:
        """Takes note of a mention, ``spoken`` if in quotation marks."""
        role = (1 + (token.head.dep_ == "ROOT")) if token.dep_ in _SUBJECTS else 0
        self._seen.append(Seen(self._sentence, token.i, entity, role, token.head.i, spoken))

    def see_stranger(self, token: Token, kind: str, spoken: bool = False) -> None:
        """Takes note of somebody without a name, whom a pronoun may mean instead."""
        stranger = NamedEntity("", gender=gender_of_noun(lemma(token.lower_, "noun")))
        stranger.types[kind] += 1
        self.see(token, stranger, spoken)

    def see_unnamed(self) -> None:
        """Takes note that the sentence is about a thing without a name."""
        self._unnamed = self._sentence

    def see_together(self, entities: Iterable[NamedEntity]) -> None:
        """Takes note of a coordination ("Scott and Wilson") that "they" may refer to."""
        self._together = self._sentence, tuple(dict.fromkeys(entities))

    def pronoun(self, token: Token, spoken: bool = False) -> tuple[NamedEntity, ...]:
        """The entities that a third-person pronoun means, empty where none is compatible."""
        word = token.lower_
        if word in _PLURAL:
            return self._plural()
        if word in _NEUTER:
            return self._neuter(token, spoken)
        candidates = list(self._candidates(token, spoken))
        topic = self._topic
        found = self._best([seen for seen in candidates if _agrees(word, seen.entity)])
        if topic is not None and topic.type == "ship" and found is not topic:
            found = topic if any(seen.entity is topic for seen in candidates) else found
        if found is None and topic is not None and topic.is_person and not spoken:
            found = topic if _agrees(word, topic) else None
        if found is None or not found.name:
            return ()
        _learn_gender(word, found)
        return (found,)

    @staticmethod
    def _best(candidates: Sequence[Seen]) -> NamedEntity | None:
        """The first of candidates in order, somebody without a name where two may as well be it."""
        if not candidates:
            return None
        first = candidates[0]
        alike = (
            seen
            for seen in candidates[1:]
            if seen.sentence == first.sentence and seen.entity is not first.entity
        )
        return first.entity if first.role or not any(alike) else NamedEntity("")

    def _neuter(self, token: Token, spoken: bool) -> tuple[NamedEntity, ...]:
        """What "it" means: the last sentence's subject, unless that or a nearer noun is unnamed."""
        if _is_empty_it(token):
            return ()
        if token.dep_ in _SUBJECTS or token.tag_ == "PRP$":
            for seen in reversed(self._here(token, spoken)):
                if seen.is_subject and _agrees("it", seen.entity):
                    return (seen.entity,) if seen.entity.name else ()
        before = token.doc[token.sent.start : token.i]
        if self._unnamed == self._sentence - 1 or any(t.tag_ in ("NN", "NNS") for t in before):
            return ()
        there = [s for s in self._before_now(spoken) if s.sentence == self._sentence - 1]
        there.sort(key=lambda seen: (not seen.is_subject, seen.position))
        found = next((seen.entity for seen in there if _agrees("it", seen.entity)), None)
        if found is None and self._topic is not None and _agrees("it", self._topic):
            found = self._topic
        return (found,) if found is not None and found.name else ()

    def definite(self, token: Token, by_kind: bool = True) -> NamedEntity | None:
        """The entity that a bare definite noun ("the ship") means, None where none fits; one
        that nothing but its kind fits to only ``by_kind``."""
        if token.tag_ != "NN" or not _is_bare_definite(token):
            return None
        noun = lemma(token.lower_, "noun")
        recent = list(self._named(token, _NOUN_WINDOW))
        for entity in recent:
            if noun in entity.nouns or noun in entity.name.lower().split():
                return entity
        if self._topic is not None and noun in self._topic.name.lower().split():
            return self._topic
        kind, gender = kind_of_noun(noun), gender_of_noun(noun)
        if not by_kind or kind in ("", "place", "event") or noun in _ANYBODY:
            return None
        alike = {id(entity): entity for entity in recent if entity.type == kind}
        fits = [e for e in alike.values() if not e.nouns and (not gender or e.gender == gender)]
        return fits[0] if len(alike) == 1 and fits else None

    def _plural(self) -> tuple[NamedEntity, ...]:
        if self._together is not None and self._sentence - self._together[0] <= 1:
            return self._together[1]
        last = (s for s in self._seen if s.sentence == self._sentence - 1 and s.is_subject)
        return next(((s.entity,) for s in last if s.entity.type in _COLLECTIVE), ())

    def _candidates(self, token: Token, spoken: bool) -> Iterator[Seen]:
        """Mentions before the token, best first, without the other arguments of its own verb."""
        own = token.tag_ == "PRP$"
        here = self._here(token, spoken, all_clauses=own)
        apart = set() if own else self._beside(token)
        ranked = sorted(here, key=lambda seen: (-seen.role, -seen.position))
        for seen in (*ranked, *self._earlier(_WINDOW, spoken)):
            if id(seen.entity) not in apart:
                yield seen

    def _beside(self, token: Token) -> set[int]:
        """Who else takes part in what the token's verb says, and so isn't meant by it."""
        clause = token.head
        clauses = {clause.i}
        while (
            token.dep_ not in _SUBJECTS and clause.dep_ in _ONE_VERB and clause.head.i != clause.i
        ):
            clause = clause.head
            clauses.add(clause.i)
        here = (s for s in self._seen if s.sentence == self._sentence)
        return {id(s.entity) for s in here if s.clause in clauses and s.position != token.i}

    def _named(self, token: Token, window: int) -> Iterator[NamedEntity]:
        here = [s for s in self._seen if s.sentence == self._sentence and s.position < token.i]
        found = [seen for seen in reversed(here) if seen.clause != token.head.i]
        for seen in (*found, *self._earlier(window, None)):
            if seen.entity.name:
                yield seen.entity

    def _before_now(self, spoken: bool | None) -> list[Seen]:
        return [s for s in self._seen if spoken is None or s.spoken is spoken]

    def _here(self, token: Token, spoken: bool, all_clauses: bool = False) -> list[Seen]:
        """What stands before the token in its sentence, without the arguments of its own verb."""
        before = [
            s
            for s in self._before_now(spoken)
            if s.sentence == self._sentence and s.position < token.i
        ]
        return [s for s in before if all_clauses or s.clause != token.head.i]

    def _earlier(self, window: int, spoken: bool | None) -> Iterator[Seen]:
        seen_before = self._before_now(spoken)
        for back in range(1, window + 1):
            there = [seen for seen in seen_before if seen.sentence == self._sentence - back]
            there.sort(key=lambda seen: (-seen.role, -seen.position))
            yield from there


def is_definite(token: Token) -> bool:
    return any(child.dep_ == "det" and child.lower_ in _DEFINITE for child in token.lefts)


def _is_empty_it(token: Token) -> bool:
    """Whether "it" stands for nothing: "it was cold", "it is clear that ..."."""
    if token.dep_ not in _SUBJECTS or (
        token.head.lemma_ == "" and not token.head.tag_.startswith("VB")
    ):
        return token.dep_ == "expl"
    if token.dep_ == "nsubjpass" and any(c.dep_ == "ccomp" for c in token.head.children):
        return True
    if token.head.lower_ not in ("is", "was", "be", "been", "'s", "’s", "seems", "seemed"):
        return False
    return any(
        child.dep_ in ("ccomp", "csubj", "advcl", "xcomp")
        or (child.dep_ == "acomp" and child.i > token.i)
        or (child.dep_ == "attr" and any(c.dep_ in ("relcl", "acl") for c in child.children))
        for child in token.head.children
    )


def _is_bare_definite(token: Token) -> bool:
    return is_definite(token) and not any(
        child.dep_ in ("relcl", "acl", "poss", "nummod")
        or (child.dep_ == "prep" and child.lower_ == "of")
        or (child.dep_ in ("amod", "compound") and child.i < token.i)
        for child in token.children
    )


def _agrees(word: str, entity: NamedEntity) -> bool:
    kind = entity.type
    if word in _NEUTER:
        return kind not in ("person", "group", "language") and not (
            kind == UNKNOWN and entity.gender
        )
    if kind == "ship":
        return word in FEMALE
    if not (kind == "person" or (kind in (UNKNOWN, ANIMAL) and entity.gender)):
        return False
    return entity.gender in ("", "male" if word in MALE else "female")


def _learn_gender(word: str, entity: NamedEntity) -> None:
    if not entity.gender and entity.is_person:
        entity.gender = "male" if word in MALE else "female"
