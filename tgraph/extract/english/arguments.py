"""Referents of statement tokens.

An object that is a described thing ("capital of France", "Scott's ship") is folded so that the
edge reaches the name in it: ``(Paris, be capital of, France)``. Other noun phrases stay whole,
as plain string literals."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyoxigraph import Literal

from tgraph.extract.english.beings import being_phrases, gender_of_noun, kind_of_being
from tgraph.extract.english.clauses import find_antecedent, lift_noun
from tgraph.extract.english.coreference import THIRD_PERSON, Discourse, is_definite
from tgraph.extract.english.mentions import Mention
from tgraph.extract.english.parser import (
    core_text,
    find_conjuncts,
    find_lemma,
    hyphenated_start,
    is_noun,
    negation_of,
    phrase_bounds,
    phrase_text,
    text_of,
)
from tgraph.extract.entity_types import kind_of_noun
from tgraph.extract.facts import Argument, NamedEntity, NameTable
from tgraph.resources import word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

_PERIODS = word_set("english", "periods")
_VAGUE = word_set("english", "vague")
CONCEPT = "concept"
_FIRST = frozenset({"i", "me", "my", "mine", "myself"})
_SECOND = frozenset({"you", "your", "yours", "yourself", "thou", "thee", "thy", "thine"})
_OWN = frozenset({"my", "your", "thy"})
_LONGEST_OWNER = 4
CERTAIN, LIKELY, WEAK = 7.0, 6.0, 4.0
_YEAR = r"(?:1[89]|20)\d\d[a-z]?"
_CITATION = re.compile(
    rf"\((?:see |e\.g\.,? )?[A-Z][^()\d]{{1,80}}?,? \(?{_YEAR}(?:[;,][^()]{{0,300}})?\)"
    r"|\[[\d,;–\- ]{1,30}\]"
    r"|\([^()]{0,60}\b(?:Figs?|Figures?|Tables?)\b[^()]{0,80}\)"
    rf"|(?<!\w)[A-Z][\w-]{{1,30}} (?:et al\.|and [A-Z][\w-]{{1,30}}) \({_YEAR}\)"
)
_IDIOMATIC = frozenset({"in", "on", "by", "at", "of", "for", "to", "as", "with", "from"})
_MEASURES = frozenset({"npadvmod", "advmod", "compound", "nmod", "amod"})


def kin_name(owner: NamedEntity, noun: str) -> str:
    """``Scrooge's nephew``."""
    return f"{owner.name}'s {noun}"


class Bound(NamedTuple):
    """An object plus the predicate leading to it."""

    predicate: str
    object: Argument


class KnownPhrases(NamedTuple):
    """Lowercase phrases recurring in a chunk: common phrases, and character phrases."""

    salient: frozenset[str]
    characters: Mapping[str, NamedEntity]


class Arguments:
    """Token resolver for one parsed text; ``dropped`` counts unresolved tokens."""

    def __init__(
        self,
        doc: Doc,
        mentions: Sequence[Mention],
        names: NameTable,
        discourse: Discourse,
        known: KnownPhrases,
        spoken: Sequence[tuple[int, int]] = (),
    ) -> None:
        self._names = names
        self._discourse = discourse
        self._known = known
        self._spoken = {i for start, end in spoken for i in range(start, end)}
        self._cited = _citation_tokens(doc)
        self._speakers: dict[int, tuple[NamedEntity, ...]] = {}
        self._mentions: dict[int, Mention] = {}
        for mention in reversed(mentions):
            self._mentions |= dict.fromkeys(range(mention.start, mention.end), mention)
        self._starts: dict[int, list[Mention]] = {}
        for mention in mentions:
            self._starts.setdefault(mention.start, []).append(mention)
        self._meant: dict[int, tuple[NamedEntity, ...]] = {}
        self.dropped: Counter[str] = Counter()

    def mention_at(self, token: Token) -> Mention | None:
        return self._mentions.get(token.i)

    def named_at(self, token: Token) -> NamedEntity | None:
        """Return the entity named at a token."""
        mention = self._mentions.get(token.i)
        if mention is None or not mention.is_name:
            return None
        return self._names.find_or_create(mention.text, mention.type)

    def prepare(self, sentence: Span) -> list[NamedEntity]:
        """Resolves names, pronouns and definite nouns of a sentence in order; returns the named."""
        self._discourse.next_sentence()
        mentioned_entities = []
        for token in sentence:
            names = [m for m in self._starts.get(token.i, ()) if m.is_name]
            if names:
                entities = [self._names.find_or_create(m.text, m.type) for m in names]
                mentioned_entities += entities
                root = sentence.doc[names[0].start : names[0].end].root
                self._discourse.note_mention(root, entities[0], root.i in self._spoken)
            elif token.i not in self._mentions:
                self.refer(token)
        self._note_coordinations(sentence)
        subjects = [
            child for child in sentence.root.children if child.dep_ in ("nsubj", "nsubjpass")
        ]
        if subjects and subjects[0].tag_ in ("NN", "NNS") and not self.find_entities(subjects[0]):
            self._discourse.see_unnamed()
        return list(dict.fromkeys(mentioned_entities))

    def find_entities(self, token: Token) -> tuple[NamedEntity, ...]:
        """Return entities denoted by a noun or pronoun.

        The tuple has no members if no entity is named."""
        if token.tag_ in ("WDT", "WP", "WP$"):
            noun = find_antecedent(token)
            return self.find_entities(lift_noun(noun)) if noun is not None else ()
        if entity := self.named_at(token):
            return (entity,)
        if token.i in self._meant:
            return self._meant[token.i]
        if token.i in self._speakers:
            return self._speakers[token.i]
        behind = (c for c in token.children if c.dep_ == "appos" and c.i > token.i)
        return next(((entity,) for child in behind if (entity := self.named_at(child))), ())

    def join_kin(self, noun: Token, named: NamedEntity) -> None:
        """Merge "his nephew, Fred" into one person, previously unnamed."""
        kin = self._meant.get(noun.i, ())
        unnamed = len(kin) == 1 and kin[0] is not named and "'s " in kin[0].name
        if unnamed and not any(child.dep_ in ("conj", "nummod") for child in noun.children):
            self._names.record_alias(named.name, kin[0].name)

    @staticmethod
    def is_narrowed(noun: Token) -> bool:
        """Tell whether words after a noun narrow its meaning: "the incidence without contact"."""
        return any(child.dep_ in ("prep", "relcl", "acl") for child in noun.rights)

    def is_cited(self, token: Token) -> bool:
        """Tell whether a token belongs to a literature reference."""
        return token.i in self._cited

    def literals(self, sentence: Span) -> list[Mention]:
        """The dates, amounts and numbers that a sentence gives."""
        mentions = (m for token in sentence for m in self._starts.get(token.i, ()))
        return [m for m in mentions if m.value is not None and m.start not in self._cited]

    def subjects(self, token: Token) -> tuple[NamedEntity, ...]:
        """Return subject entities of a statement, counting the reason if none exist."""
        if token.i in self._cited:
            return ()
        if entities := self.find_entities(token):
            return entities
        if token.tag_.startswith(("PRP", "W", "EX", "DT")):
            self.dropped["unresolved pronoun"] += 1
            return ()
        if is_noun(token) and (phrase := self._phrase_entity(token)):
            return (phrase,)
        self.dropped["unresolved noun" if is_definite(token) else "unnamed subject"] += 1
        return ()

    def objects(self, predicate: str, token: Token) -> list[Bound]:
        """Return objects denoted by a token, each paired with a predicate.

        The list has no members if the token is dropped."""
        if token.i in self._cited:
            return []
        if predicate.endswith(" @"):
            return self._read_dated(predicate.removesuffix(" @"), token)
        predicate = f"{predicate} {negation_of(token)}".rstrip()
        if entities := self.find_entities(token):
            return [Bound(predicate, entity) for entity in entities]
        literal = self._resolve_literal(token)
        if literal is not None:
            return [Bound(predicate, literal)]
        if token.tag_.startswith(("PRP", "W", "DT", "EX")):
            self.dropped["unresolved pronoun"] += token.tag_.startswith("PRP")
            return []
        return self.find_descriptions(predicate, token)

    def refer(self, token: Token) -> None:
        """Record referents of a pronoun or common noun, if determinable."""
        entities: tuple[NamedEntity, ...] = ()
        spoken = token.i in self._spoken
        if token.lower_ in THIRD_PERSON:
            entities = self._discourse.pronoun(token, spoken)
        elif token.tag_ == "NN" and (entity := self._being_entity(token)):
            entities = (entity,)
        if entities:
            self._meant[token.i] = entities
            if len(entities) == 1:
                self._discourse.note_mention(token, entities[0], spoken)
        elif token.tag_ == "NN" and (kind := kind_of_being(token.lower_)):
            self._discourse.see_stranger(token, kind, spoken)

    def _being_entity(self, token: Token) -> NamedEntity | None:
        owner = next((child for child in token.lefts if child.dep_ == "poss"), None)
        if owner is not None:
            return self._of_owner(token, owner)
        character = self._known.characters.get(being_phrases(token.doc).get(token.i, ""))
        if character is not None and character.name.lower() == token.lower_:
            return self._discourse.definite(token, by_kind=False) or character
        return character or self._discourse.definite(token)

    def _of_owner(self, token: Token, owner: Token) -> NamedEntity | None:
        """Return the person meant by a kinship phrase ("His nephew", "Scrooge's nephew"), named
        after the owner."""
        owners = self.find_entities(owner)
        noun = find_lemma(token.lower_, "noun")
        if len(owners) != 1 or kind_of_being(noun) != "person" or token.dep_ == "appos":
            return None
        if owners[0].name.endswith(f"'s {noun}"):
            return owners[0]  # spoken of again
        if not owners[0].name or len(owners[0].name.split()) > _LONGEST_OWNER:
            return None
        if "'s " in owners[0].name:
            return None  # kin of kin are seldom told apart rightly
        entity = self._names.find_or_create(kin_name(owners[0], noun), "person")
        entity.gender = entity.gender or gender_of_noun(noun)
        return entity

    def speak(self, tokens: Span, speaker: NamedEntity, listener: NamedEntity | None) -> None:
        """Record referents of "I" and "you" in spoken text."""
        for token in tokens:
            if token.lower_ in _FIRST:
                self._speakers[token.i] = (speaker,)
            elif listener is not None and token.lower_ in _SECOND:
                self._speakers[token.i] = (listener,)
        for token in tokens:
            owned = any(child.lower_ in _OWN and child.dep_ == "poss" for child in token.lefts)
            if owned and token.i not in self._meant:
                self.refer(token)

    def somebody(self, token: Token) -> NamedEntity | None:
        """Return a speaker or listener: the entity denoted by a token, otherwise an entity
        named by its phrase."""
        entities = self.find_entities(token)
        if entities:
            return entities[0] if len(entities) == 1 else None
        is_plain_noun = (
            is_noun(token) and token.tag_ in ("NN", "NNP") and token.i not in self._mentions
        )
        text = phrase_text(token) if is_plain_noun else ""
        if not text or token.lower_ in _VAGUE or any(c.dep_ == "poss" for c in token.lefts):
            return None
        return self._names.find_or_create(text, kind_of_being(token.lower_) or "person")

    def _note_coordinations(self, sentence: Span) -> None:
        for token in sentence:
            if token.dep_ in ("nsubj", "nsubjpass", "dobj", "pobj"):
                coordinated = [e for t in find_conjuncts(token) if (e := self.named_at(t))]
                people = sum(entity.is_person for entity in coordinated)
                placed = any(entity.type == "place" for entity in coordinated)
                acting = token.dep_.startswith("nsubj") and not placed
                if len(coordinated) > 1 and (people == len(coordinated) or acting):
                    self._discourse.see_together(coordinated)
                for entity in coordinated if people else ():  # single surnames are persons as well
                    if not (entity.is_person or entity.located or " " in entity.name):
                        entity.types["person"] += entity.types.total()

    def _phrase_entity(self, token: Token) -> NamedEntity | None:
        """Return a phrase entity if the phrase contains a name ("Scott's nephew") or is salient
        in the chunk."""
        start, end = phrase_bounds(token)
        text = phrase_text(token)
        if token.lower_ in _VAGUE or not text or end - start > 8:
            return None
        inside = filter(None, map(self.named_at, token.doc[start:end]))
        if text.lower() in self._known.salient or any(e.type != "group" for e in inside):
            return self._names.find_or_create(
                text, kind_of_noun(find_lemma(token.lower_, "noun")) or CONCEPT
            )
        return None

    def _resolve_literal(self, token: Token) -> Literal | None:
        mention = self.mention_at(token)
        if mention is not None and mention.value is not None:
            start, end = phrase_bounds(token)
            covers = mention.start <= start and end <= mention.end
            return mention.value if covers or mention.is_time else Literal(phrase_text(token))
        if token.lower_ in _PERIODS:
            inside = (self._mentions.get(t.i) for t in token.subtree)
            return next((m.value for m in inside if m is not None and m.is_time), None)
        return None

    def _read_dated(self, predicate: str, token: Token) -> list[Bound]:
        literal = self._resolve_literal(token)
        mention = self.mention_at(token)
        if literal is None or mention is None or not mention.is_time:
            return []
        on = (
            literal.datatype.value.endswith("date")
            or mention.text[:1].isdigit() is not mention.text[-1:].isdigit()
        )
        return [Bound(f"{predicate} {'on' if on else 'in'}", literal)]

    def find_descriptions(self, predicate: str, token: Token) -> list[Bound]:
        """Return description objects, folded onto contained names, otherwise a literal."""
        if not is_noun(token):
            return self._read_adjective(predicate, token)
        folded = list(self._fold_names(predicate, token))
        if folded:
            return folded
        text = phrase_text(token)
        if any(child.tag_ == "PRP$" for child in token.children) and kind_of_noun(text) == "person":
            self.dropped["unresolved pronoun"] += 1
            return []
        ranges = token.lower_ in _PERIODS and predicate.endswith((" to", " from"))
        idiom = predicate.rpartition(" ")[2] in _IDIOMATIC
        if ranges or (token.lower_ in _VAGUE and (idiom or " " not in text)):
            self.dropped["vague object"] += 1
            return []
        if text.lower() in self._known.salient:
            return [
                Bound(
                    predicate,
                    self._names.find_or_create(text, kind_of_noun(token.lower_) or CONCEPT),
                )
            ]
        return [Bound(predicate, Literal(text))] if text else []

    def _read_adjective(self, predicate: str, token: Token) -> list[Bound]:
        if not token.tag_.startswith("JJ") or any(
            child.dep_ == "xcomp" for child in token.children
        ):
            return []
        if token.lower_ in _VAGUE:
            self.dropped["vague object"] += 1
            return []
        measures = [c for c in token.lefts if c.dep_ in _MEASURES and c.tag_ != "WRB"]
        start = hyphenated_start(token.doc, measures[0].left_edge.i if measures else token.i)
        return [Bound(predicate, Literal(token.doc[start : token.i + 1].text))]

    def _fold_names(self, predicate: str, token: Token) -> Iterator[Bound]:
        """Yield folded objects: ``be capital of`` + France, ``paint out name of`` + Marley."""
        core = core_text(token)
        for child in token.children:
            if child.dep_ == "poss":
                possessive_predicate = f"{predicate} {token.text} of"
                yield from (
                    Bound(possessive_predicate, entity) for entity in self.find_entities(child)
                )
            elif child.dep_ == "prep":
                for target in preposition_targets(child):
                    for entity in self.find_entities(target):
                        yield Bound(f"{predicate} {core} {child.lower_}", entity)


def _citation_tokens(doc: Doc) -> frozenset[int]:
    """The tokens of references in brackets: "(Guleria et al., 1996)", "[27]"."""
    text = text_of(doc)
    if "(" not in text and "[" not in text:
        return frozenset()
    token_indexes: set[int] = set()
    for match in _CITATION.finditer(text):
        span = doc.char_span(*match.span(), alignment_mode="expand")
        token_indexes |= set(range(span.start, span.end)) if span is not None else set()
    return frozenset(token_indexes)


def preposition_targets(preposition: Token) -> list[Token]:
    return [t for c in preposition.children if c.dep_ == "pobj" for t in find_conjuncts(c)]
