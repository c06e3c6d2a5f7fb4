"""Whom a pronoun or a definite noun means: the nearest compatible entity before it.

Candidates come from the same sentence and the three before it; subjects of earlier sentences come
first, which is the simplest form of salience (Hobbs 1978, Lappin and Leass 1994). Where nothing
fits, the statement is dropped: a wrong name is worse than none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tgraph.extract.english.parser import lemma
from tgraph.extract.entity_types import kind_of_noun
from tgraph.extract.facts import UNKNOWN, NamedEntity

if TYPE_CHECKING:
    from spacy.tokens import Token

_MALE = frozenset({"he", "him", "his", "himself"})
_FEMALE = frozenset({"she", "her", "hers", "herself"})
_NEUTER = frozenset({"it", "its", "itself"})
_PLURAL = frozenset({"they", "them", "their", "theirs", "themselves"})
THIRD_PERSON = _MALE | _FEMALE | _NEUTER | _PLURAL
_DEFINITE = frozenset({"the", "this", "that"})
_WINDOW = 3
_NOUN_WINDOW = 8
_COLLECTIVE = frozenset({"organization", "group"})
_SUBJECTS = frozenset({"nsubj", "nsubjpass"})


@dataclass(frozen=True, slots=True)
class Seen:
    """One mention that later ones may refer to: in which sentence, where, and in which role."""

    sentence: int
    position: int
    entity: NamedEntity
    is_subject: bool
    clause: int


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

    def see(self, token: Token, entity: NamedEntity) -> None:
        self._seen.append(
            Seen(self._sentence, token.i, entity, token.dep_ in _SUBJECTS, token.head.i)
        )

    def see_unnamed(self) -> None:
        """Takes note that the sentence is about a thing without a name."""
        self._unnamed = self._sentence

    def see_together(self, entities: Iterable[NamedEntity]) -> None:
        """Takes note of a coordination ("Scott and Wilson") that "they" may refer to."""
        self._together = self._sentence, tuple(dict.fromkeys(entities))

    def pronoun(self, token: Token) -> tuple[NamedEntity, ...]:
        """The entities that a third-person pronoun means, empty where none is compatible."""
        word = token.lower_
        if word in _PLURAL:
            return self._plural(token)
        if word in _NEUTER:
            return self._neuter(token)
        found = [entity for entity in self._candidates(token) if _agrees(word, entity)]
        topic = self._topic
        if found:
            return (topic if topic in found and topic.type == "ship" else found[0],)
        return (topic,) if topic is not None and topic.is_person and _agrees(word, topic) else ()

    def _neuter(self, token: Token) -> tuple[NamedEntity, ...]:
        """What "it" means: the last sentence's subject, unless that or a nearer noun is unnamed."""
        if _is_empty_it(token):
            return ()
        if token.dep_ in _SUBJECTS or token.tag_ == "PRP$":
            for seen in reversed(self._here(token)):
                if seen.is_subject and _agrees("it", seen.entity):
                    return (seen.entity,)
        before = token.doc[token.sent.start : token.i]
        if self._unnamed == self._sentence - 1 or any(t.tag_ in ("NN", "NNS") for t in before):
            return ()
        there = [s for s in self._seen if s.sentence == self._sentence - 1]
        there.sort(key=lambda seen: (not seen.is_subject, seen.position))
        found = next((seen.entity for seen in there if _agrees("it", seen.entity)), None)
        if found is None and self._topic is not None and _agrees("it", self._topic):
            found = self._topic
        return (found,) if found is not None else ()

    def definite(self, token: Token) -> NamedEntity | None:
        """The entity that a bare definite noun ("the ship") means, None where none fits."""
        if token.tag_ != "NN" or not _is_bare_definite(token):
            return None
        noun = lemma(token.lower_, "noun")
        for entity in self._before(token, _NOUN_WINDOW):
            if noun in entity.nouns or noun in entity.name.lower().split():
                return entity
        if self._topic is not None and noun in self._topic.name.lower().split():
            return self._topic
        kind = kind_of_noun(noun)
        if kind in ("", "place"):
            return None
        fits = (e for e in self._before(token, _WINDOW) if e.type == kind and not e.nouns)
        return next(fits, None)

    def _plural(self, token: Token) -> tuple[NamedEntity, ...]:
        if self._together is not None and self._sentence - self._together[0] <= 1:
            return self._together[1]
        last = (s for s in self._seen if s.sentence == self._sentence - 1 and s.is_subject)
        return next(((s.entity,) for s in last if s.entity.type in _COLLECTIVE), ())

    def _candidates(self, token: Token) -> Iterator[NamedEntity]:
        """Mentions before the token, best first, without the other arguments of its own verb."""
        here = self._here(token, all_clauses=token.tag_ == "PRP$")
        yield from (s.entity for s in sorted(here, key=lambda s: (not s.is_subject, -s.position)))
        yield from self._earlier(_WINDOW)

    def _before(self, token: Token, window: int) -> Iterator[NamedEntity]:
        yield from (seen.entity for seen in reversed(self._here(token)))
        yield from self._earlier(window)

    def _here(self, token: Token, all_clauses: bool = False) -> list[Seen]:
        """What stands before the token in its sentence, without the arguments of its own verb."""
        before = [s for s in self._seen if s.sentence == self._sentence and s.position < token.i]
        return [s for s in before if all_clauses or s.clause != token.head.i]

    def _earlier(self, window: int) -> Iterator[NamedEntity]:
        for back in range(1, window + 1):
            there = [seen for seen in self._seen if seen.sentence == self._sentence - back]
            there.sort(key=lambda seen: (not seen.is_subject, -seen.position))
            yield from (seen.entity for seen in there)


def is_definite(token: Token) -> bool:
    return any(child.dep_ == "det" and child.lower_ in _DEFINITE for child in token.lefts)


def _is_empty_it(token: Token) -> bool:
    """Whether "it" stands for nothing: "it was cold", "it is clear that ..."."""
    if token.dep_ not in _SUBJECTS or (
        token.head.lemma_ == "" and not token.head.tag_.startswith("VB")
    ):
        return token.dep_ == "expl"
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
        return kind not in ("person", "group", "language")
    if kind == "ship":
        return word in _FEMALE
    if not (entity.is_person or (kind == UNKNOWN and entity.gender)):
        return False
    gender = "male" if word in _MALE else "female"
    if entity.gender in ("", gender):
        entity.gender = gender
        return True
    return False
