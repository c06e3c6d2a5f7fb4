"""Unnamed acting beings in a text: "the old woman", "his nephew", "the wolf"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tgraph.extract.english.mentions import Mention
from tgraph.extract.english.parser import phrase_bounds
from tgraph.extract.entity_types import kind_of_noun, nouns_of
from tgraph.extract.facts import UNKNOWN, NamedEntity, NameTable
from tgraph.resources import word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

ANIMAL = "animal"
MALE = frozenset({"he", "him", "his", "himself"})
FEMALE = frozenset({"she", "her", "hers", "herself"})
_MALE_NOUNS = word_set("english", "male_nouns")
_FEMALE_NOUNS = word_set("english", "female_nouns")
_ANIMALS = word_set("english", "animals")
_MORE_PERSONS = word_set("english", "more_persons")
_BEINGS = _ANIMALS | _MORE_PERSONS | nouns_of("person")
_ARTICLES = frozenset({"the", "this", "that", "a", "an"})
_DEFINITE = frozenset({"the", "this", "that"})
_WHICH = frozenset({"other", "same", "next", "only", "last", "first", "second", "third", "former"})
_GENDERED = MALE | FEMALE
_TWICE = 2
_LONGEST = 4


def kind_of_being(noun: str) -> str:
    """Return ``person`` or ``animal`` for nouns denoting beings able to act and speak;
    otherwise blank text."""
    noun = noun.lower()
    if noun in _ANIMALS:
        return ANIMAL
    return "person" if kind_of_noun(noun) == "person" or noun in _MORE_PERSONS else ""


def gender_of_noun(noun: str) -> str:
    """Return ``male`` or ``female`` for gendered being nouns ("uncle"); otherwise blank text."""
    noun = noun.lower()
    if noun in _MALE_NOUNS:
        return "male"
    return "female" if noun in _FEMALE_NOUNS else ""


def being_phrases(doc: Doc) -> dict[int, str]:
    """Return being phrases by token index, such as ``old woman`` for the "woman" of "the old
    woman".

    Indistinct phrases are omitted."""
    phrases: dict[int, str] | None = doc.user_data.get("beings")
    if phrases is None:
        nouns = (token for token in doc if token.lower_ in _BEINGS and token.tag_ == "NN")
        phrases = {token.i: phrase for token in nouns if (phrase := _being_phrase(token))}
        doc.user_data["beings"] = phrases
    return phrases


def _being_phrase(token: Token) -> str:
    articles = [child for child in token.lefts if child.dep_ == "det"]
    if not articles or articles[0].lower_ not in _ARTICLES or _is_narrowed(token):
        return ""
    start, end = phrase_bounds(token, whole=False)
    words = token.doc[start:end]
    if end - start > _LONGEST or words[0].lower_ in _WHICH:
        return ""
    return " ".join(words.text.lower().split())


def _is_narrowed(token: Token) -> bool:
    """Tell whether further words narrow a noun, or the noun describes another entity."""
    if token.dep_ in ("attr", "appos", "compound", "oprd"):
        return True
    return any(c.dep_ == "prep" and c.lower_ == "of" and c.i == token.i + 1 for c in token.rights)


def find_characters(
    docs: Sequence[Doc], mentions: Sequence[Sequence[Mention]], names: NameTable
) -> dict[str, NamedEntity]:
    """Return beings mentioned repeatedly by the same noun in a chunk, by phrase.

    "The woman" is the old woman where there is no other."""
    counts: Counter[str] = Counter()
    definite_phrases: set[str] = set()
    for doc, doc_mentions in zip(docs, mentions, strict=True):
        name_tokens = {i for mention in doc_mentions for i in range(mention.start, mention.end)}
        for place, phrase in being_phrases(doc).items():
            if place not in name_tokens:
                counts[phrase] += 1
                definite = any(child.lower_ in _DEFINITE for child in doc[place].lefts)
                definite_phrases |= {phrase} if definite else set()
    full = _longer_phrases(counts)
    phrase_counts: Counter[str] = Counter()
    for phrase, count in counts.items():
        phrase_counts[full.get(phrase, phrase)] += count
    definite_phrases |= {full.get(phrase, phrase) for phrase in definite_phrases}
    chosen = {p for p in phrase_counts if phrase_counts[p] >= _TWICE and p in definite_phrases}
    return {p: _character_entity(full.get(p, p), names) for p in counts if full.get(p, p) in chosen}


def _longer_phrases(counts: Counter[str]) -> dict[str, str]:
    """Return, for each bare noun, its only longer phrase ending with the noun."""
    longer: dict[str, list[str]] = {}
    for phrase in counts:
        noun = phrase.rpartition(" ")[2]
        if noun != phrase:
            longer.setdefault(noun, []).append(phrase)
    return {n: phrases[0] for n, phrases in longer.items() if n in counts and len(phrases) == 1}


def _character_entity(phrase: str, names: NameTable) -> NamedEntity:
    noun = phrase.rpartition(" ")[2]
    entity = names.find_or_create(phrase, kind_of_being(noun))
    entity.gender = entity.gender or gender_of_noun(noun)
    if entity.type == UNKNOWN:
        entity.types[kind_of_being(noun)] += 1
    return entity


def learn_genders(
    docs: Sequence[Doc],
    mentions: Sequence[Sequence[Mention]],
    names: NameTable,
    known: Mapping[str, NamedEntity],
) -> None:
    """Assign genders to names and characters, judging by subsequent pronouns with nobody else
    mentioned between."""
    votes: dict[int, Counter[str]] = {}
    entities: dict[int, NamedEntity] = {}
    for doc, doc_mentions in zip(docs, mentions, strict=True):
        at = {m.start: names.find_or_create(m.text, m.type) for m in doc_mentions if m.is_name}
        for place, phrase in being_phrases(doc).items():
            if place not in at and (entity := known.get(phrase)):
                at[place] = entity
        for entity, word in _names_with_pronouns(doc, at):
            entities[id(entity)] = entity
            votes.setdefault(id(entity), Counter())["male" if word in MALE else "female"] += 1
    for key, counts in votes.items():
        entity = entities[key]
        (gender, top_count), *other_counts = counts.most_common()
        unknown = entity.type == UNKNOWN
        clear = top_count > 2 * sum(count for _, count in other_counts) and top_count > (
            1 if unknown else 0
        )
        if clear and not entity.gender and (unknown or entity.type in ("person", ANIMAL)):
            entity.gender = gender


def _names_with_pronouns(doc: Doc, at: dict[int, NamedEntity]) -> Iterator[tuple[NamedEntity, str]]:
    """Yield entities paired with subsequent he or she pronouns, unless another person
    intervenes."""
    last: NamedEntity | None = None
    far = 0
    for token in doc:
        far += bool(token.is_sent_start)
        if token.i in at:
            candidate = at[token.i]
            if candidate.type in ("person", UNKNOWN, ANIMAL):
                last, far = (candidate if last in (None, candidate) or far else None), 0
            continue
        word = token.lower_
        if word in _BEINGS:
            last = None
        elif last is not None and far < _TWICE and word in _GENDERED:
            yield last, word
