"""Resolution of pronouns and definite nouns: choose the nearest compatible earlier entity.

Candidates come from the same sentence and the three before it; subjects of earlier sentences
come first, which is the simplest form of salience (Hobbs 1978, Lappin and Leass 1994). Quoted
speech has its own candidates: a name in somebody's mouth is not who "he" of the narration is.
If nothing fits, or an unnamed person fits first, the statement is dropped: a wrong name is
worse than none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tgraph.extract.english.beings import ANIMAL, FEMALE, MALE, gender_of_noun
from tgraph.extract.english.parser import find_lemma
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
    """A mention for later reference: sentence, position, and grammatical role (2 for a sentence
    subject, 1 for another subject, else 0)."""

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
    """Entities mentioned so far in a chunk, in order."""

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
            self._seen = [mention for mention in self._seen if mention.sentence >= oldest]

    def note_mention(self, token: Token, entity: NamedEntity, spoken: bool = False) -> None:
        """Takes note of a mention, ``spoken`` if in quotation marks."""
        role = (1 + (token.head.dep_ == "ROOT")) if token.dep_ in _SUBJECTS else 0
        self._seen.append(Seen(self._sentence, token.i, entity, role, token.head.i, spoken))

    def see_stranger(self, token: Token, kind: str, spoken: bool = False) -> None:
        """Record an unnamed person as possible pronoun referent."""
        stranger = NamedEntity("", gender=gender_of_noun(find_lemma(token.lower_, "noun")))
        stranger.types[kind] += 1
        self.note_mention(token, stranger, spoken)

    def see_unnamed(self) -> None:
        """Record that the sentence has an unnamed subject."""
        self._unnamed = self._sentence

    def see_together(self, entities: Iterable[NamedEntity]) -> None:
        """Record a coordination ("Scott and Wilson") as possible referent for "they"."""
        self._together = self._sentence, tuple(dict.fromkeys(entities))

    def pronoun(self, token: Token, spoken: bool = False) -> tuple[NamedEntity, ...]:
        """Return entities denoted by a third-person pronoun; an empty tuple without compatible
        entity."""
        word = token.lower_
        if word in _PLURAL:
            return self._resolve_plural()
        if word in _NEUTER:
            return self._resolve_neuter(token, spoken)
        candidates = list(self._rank_candidates(token, spoken))
        topic = self._topic
        referent = self._choose_candidate(
            [mention for mention in candidates if _agrees_with(word, mention.entity)]
        )
        if topic is not None and topic.type == "ship" and referent is not topic:
            referent = topic if any(mention.entity is topic for mention in candidates) else referent
        if referent is None and topic is not None and topic.is_person and not spoken:
            referent = topic if _agrees_with(word, topic) else None
        if referent is None or not referent.name:
            return ()
        _learn_gender(word, referent)
        return (referent,)

    @staticmethod
    def _choose_candidate(candidates: Sequence[Seen]) -> NamedEntity | None:
        """Return the leading candidate's entity, or an unnamed entity if two candidates are
        equally likely."""
        if not candidates:
            return None
        first = candidates[0]
        alike = (
            mention
            for mention in candidates[1:]
            if mention.sentence == first.sentence and mention.entity is not first.entity
        )
        return first.entity if first.role or not any(alike) else NamedEntity("")

    def _resolve_neuter(self, token: Token, spoken: bool) -> tuple[NamedEntity, ...]:
        """Return the referent of "it": the preceding sentence's subject, unless unnamed or
        followed by an unnamed noun."""
        if _is_empty_it(token):
            return ()
        if token.dep_ in _SUBJECTS or token.tag_ == "PRP$":
            for mention in reversed(self._sentence_mentions(token, spoken)):
                if mention.is_subject and _agrees_with("it", mention.entity):
                    return (mention.entity,) if mention.entity.name else ()
        before = token.doc[token.sent.start : token.i]
        if self._unnamed == self._sentence - 1 or any(t.tag_ in ("NN", "NNS") for t in before):
            return ()
        there = [s for s in self._before_now(spoken) if s.sentence == self._sentence - 1]
        there.sort(key=lambda seen: (not seen.is_subject, seen.position))
        referent = next(
            (mention.entity for mention in there if _agrees_with("it", mention.entity)), None
        )
        if referent is None and self._topic is not None and _agrees_with("it", self._topic):
            referent = self._topic
        return (referent,) if referent is not None and referent.name else ()

    def definite(self, token: Token, by_kind: bool = True) -> NamedEntity | None:
        """Return the entity denoted by a bare definite noun ("the ship"), or None.

        Matches by type alone count only with ``by_kind``."""
        if token.tag_ != "NN" or not _is_bare_definite(token):
            return None
        noun = find_lemma(token.lower_, "noun")
        recent = list(self._recent_entities(token, _NOUN_WINDOW))
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

    def _resolve_plural(self) -> tuple[NamedEntity, ...]:
        if self._together is not None and self._sentence - self._together[0] <= 1:
            return self._together[1]
        last = (s for s in self._seen if s.sentence == self._sentence - 1 and s.is_subject)
        return next(((s.entity,) for s in last if s.entity.type in _COLLECTIVE), ())

    def _rank_candidates(self, token: Token, spoken: bool) -> Iterator[Seen]:
        """Yield earlier mentions, best candidates leading, without co-arguments of the token's
        verb."""
        is_possessive = token.tag_ == "PRP$"
        here = self._sentence_mentions(token, spoken, all_clauses=is_possessive)
        apart = set() if is_possessive else self._verb_arguments(token)
        ranked = sorted(here, key=lambda seen: (-seen.role, -seen.position))
        for mention in (*ranked, *self._earlier_mentions(_WINDOW, spoken)):
            if id(mention.entity) not in apart:
                yield mention

    def _verb_arguments(self, token: Token) -> set[int]:
        """Return ids of other participants of the token's verb, excluded as referents."""
        clause = token.head
        clauses = {clause.i}
        while (
            token.dep_ not in _SUBJECTS and clause.dep_ in _ONE_VERB and clause.head.i != clause.i
        ):
            clause = clause.head
            clauses.add(clause.i)
        here = (s for s in self._seen if s.sentence == self._sentence)
        return {id(s.entity) for s in here if s.clause in clauses and s.position != token.i}

    def _recent_entities(self, token: Token, window: int) -> Iterator[NamedEntity]:
        here = [s for s in self._seen if s.sentence == self._sentence and s.position < token.i]
        mentions = [mention for mention in reversed(here) if mention.clause != token.head.i]
        for mention in (*mentions, *self._earlier_mentions(window, None)):
            if mention.entity.name:
                yield mention.entity

    def _before_now(self, spoken: bool | None) -> list[Seen]:
        return [s for s in self._seen if spoken is None or s.spoken is spoken]

    def _sentence_mentions(
        self, token: Token, spoken: bool, all_clauses: bool = False
    ) -> list[Seen]:
        """Return earlier mentions in the token's sentence, without arguments of its verb."""
        before = [
            s
            for s in self._before_now(spoken)
            if s.sentence == self._sentence and s.position < token.i
        ]
        return [s for s in before if all_clauses or s.clause != token.head.i]

    def _earlier_mentions(self, window: int, spoken: bool | None) -> Iterator[Seen]:
        seen_before = self._before_now(spoken)
        for back in range(1, window + 1):
            there = [
                mention for mention in seen_before if mention.sentence == self._sentence - back
            ]
            there.sort(key=lambda seen: (-seen.role, -seen.position))
            yield from there


def is_definite(token: Token) -> bool:
    return any(child.dep_ == "det" and child.lower_ in _DEFINITE for child in token.lefts)


def _is_empty_it(token: Token) -> bool:
    """Tell whether a pronoun lacks a referent.

    Examples: "it was cold", "it is clear that ..."."""
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


def _agrees_with(word: str, entity: NamedEntity) -> bool:
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
