"""Who acts in a text without having a name: "the old woman", "his nephew", "the wolf"."""

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
    """``person`` or ``animal`` for the noun of one that may act and speak, else empty."""
    noun = noun.lower()
    if noun in _ANIMALS:
        return ANIMAL
    return "person" if kind_of_noun(noun) == "person" or noun in _MORE_PERSONS else ""


def gender_of_noun(noun: str) -> str:
    """``male`` or ``female`` where the noun of a being tells ("uncle"), else empty."""
    noun = noun.lower()
    if noun in _MALE_NOUNS:
        return "male"
    return "female" if noun in _FEMALE_NOUNS else ""


def being_phrases(doc: Doc) -> dict[int, str]:
    """``old woman`` for the "woman" of "the old woman", by token; what tells nobody apart is left
    out."""
    known: dict[int, str] | None = doc.user_data.get("beings")
    if known is None:
        nouns = (token for token in doc if token.lower_ in _BEINGS and token.tag_ == "NN")
        known = {token.i: phrase for token in nouns if (phrase := _phrase(token))}
        doc.user_data["beings"] = known
    return known


def _phrase(token: Token) -> str:
    articles = [child for child in token.lefts if child.dep_ == "det"]
    if not articles or articles[0].lower_ not in _ARTICLES or _is_narrowed(token):
        return ""
    start, end = phrase_bounds(token, whole=False)
    words = token.doc[start:end]
    if end - start > _LONGEST or words[0].lower_ in _WHICH:
        return ""
    return " ".join(words.text.lower().split())


def _is_narrowed(token: Token) -> bool:
    """Whether more is said of which one it is, or the noun says what somebody else is."""
    if token.dep_ in ("attr", "appos", "compound", "oprd"):
        return True
    return any(c.dep_ == "prep" and c.lower_ == "of" and c.i == token.i + 1 for c in token.rights)


def characters(
    docs: Sequence[Doc], mentions: Sequence[Sequence[Mention]], names: NameTable
) -> dict[str, NamedEntity]:
    """The beings that a chunk speaks of more than once by the same noun, by their phrases.

    "The woman" is the old woman where there is no other.
    """
    counts: Counter[str] = Counter()
    known: set[str] = set()
    for doc, found in zip(docs, mentions, strict=True):
        named = {i for mention in found for i in range(mention.start, mention.end)}
        for place, phrase in being_phrases(doc).items():
            if place not in named:
                counts[phrase] += 1
                definite = any(child.lower_ in _DEFINITE for child in doc[place].lefts)
                known |= {phrase} if definite else set()
    full = _fuller(counts)
    whole: Counter[str] = Counter()
    for phrase, count in counts.items():
        whole[full.get(phrase, phrase)] += count
    known |= {full.get(phrase, phrase) for phrase in known}
    chosen = {p for p in whole if whole[p] >= _TWICE and p in known}
    return {p: _entity(full.get(p, p), names) for p in counts if full.get(p, p) in chosen}


def _fuller(counts: Counter[str]) -> dict[str, str]:
    """For a bare noun the only longer phrase that ends with it."""
    longer: dict[str, list[str]] = {}
    for phrase in counts:
        noun = phrase.rpartition(" ")[2]
        if noun != phrase:
            longer.setdefault(noun, []).append(phrase)
    return {n: found[0] for n, found in longer.items() if n in counts and len(found) == 1}


def _entity(phrase: str, names: NameTable) -> NamedEntity:
    noun = phrase.rpartition(" ")[2]
    entity = names.get(phrase, kind_of_being(noun))
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
    """Gives names and characters the gender of the pronouns that follow them where nobody else is
    spoken of."""
    votes: dict[int, Counter[str]] = {}
    entities: dict[int, NamedEntity] = {}
    for doc, found in zip(docs, mentions, strict=True):
        at = {m.start: names.get(m.text, m.type) for m in found if m.is_name}
        for place, phrase in being_phrases(doc).items():
            if place not in at and (entity := known.get(phrase)):
                at[place] = entity
        for entity, word in _following(doc, at):
            entities[id(entity)] = entity
            votes.setdefault(id(entity), Counter())["male" if word in MALE else "female"] += 1
    for key, counts in votes.items():
        entity = entities[key]
        (gender, most), *rest = counts.most_common()
        unknown = entity.type == UNKNOWN
        clear = most > 2 * sum(count for _, count in rest) and most > (1 if unknown else 0)
        if clear and not entity.gender and (unknown or entity.type in ("person", ANIMAL)):
            entity.gender = gender


def _following(doc: Doc, at: dict[int, NamedEntity]) -> Iterator[tuple[NamedEntity, str]]:
    """Names with the he or she behind them, as long as nobody else comes between."""
    last: NamedEntity | None = None
    far = 0
    for token in doc:
        far += bool(token.is_sent_start)
        if token.i in at:
            other = at[token.i]
            if other.type in ("person", UNKNOWN, ANIMAL):
                last, far = (other if last in (None, other) or far else None), 0
            continue
        word = token.lower_
        if word in _BEINGS:
            last = None
        elif last is not None and far < _TWICE and word in _GENDERED:
            yield last, word
