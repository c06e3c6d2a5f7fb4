"""Statements in noun phrases: appositions, offices, other names and names in brackets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyoxigraph import Literal

from tgraph.extract.english.arguments import CERTAIN, LIKELY, WEAK, Arguments, preposition_targets
from tgraph.extract.english.mentions import Mention
from tgraph.extract.english.parser import core_text, find_lemma, is_noun, phrase_text
from tgraph.extract.entity_types import denotes_person, kind_of_noun
from tgraph.extract.facts import UNKNOWN, Argument, NamedEntity, NameTable, acronym_of

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token


_DATED = frozenset({"event", "work", "law", "organization", "facility", "ship"})
_SITED = frozenset({"organization", "facility", "place", "event", "group"})
_PLACED = frozenset({"of", "in", "at", "near", "from", "on"})
_DASH = re.compile(r"[-–—]+|to")
_BETWEEN = 9
"""Tokens at most between a name and another one of the same thing."""

_TIMES = frozenset({"formerly", "previously", "originally", "once", "later", "now", "today"})
_ADVERB = rf"(?:{'|'.join(sorted(_TIMES))}|also|sometimes|often|commonly|popularly|better|best)"
_WHEN = re.compile(rf"\b{_ADVERB}\b")
_CALLED = re.compile(
    rf"(?:(?:[,(]|is|was|are|were) ?(?:{_ADVERB} )*"
    r"(?:known as|known by the name(?: of)?|called|nicknamed|abbreviated(?: as| to)?)"
    r"|[,(]? ?a\.?k\.?a\.?|(?P<bare>[,(] ?(?:formerly|previously|originally)))"
    r"(?: the)? ?[\"“‘'`]*",
    re.IGNORECASE,
)
_GOES_ON = frozenset({"POS", "NN", "NNS", "NNP", "NNPS"})
_INSIDE_NAMES = frozenset({"the", "of"})


class Nominal(NamedTuple):
    """A statement found in a noun phrase."""

    subject: NamedEntity
    predicate: str
    object: Argument
    strength: float


def find_nominals(sentence: Span, arguments: Arguments) -> Iterator[Nominal]:
    """The statements of a sentence's noun phrases, in reading order."""
    for token in sentence:
        if not is_noun(token) or arguments.is_cited(token):
            continue
        named_entity = arguments.named_at(token)
        if token.dep_ == "appos":
            yield from _read_apposition(token, named_entity, arguments)
        mention = arguments.mention_at(token)
        if named_entity and mention and token == token.doc[mention.start : mention.end].root:
            yield from _before_name(token, mention, named_entity, arguments)
            yield from _after_name(token, mention, named_entity, arguments)


def record_acronyms(doc: Doc, mentions: Sequence[Mention], names: NameTable) -> None:
    """Records acronyms in brackets: "British Antarctic Expedition (BAE)"."""
    for mention in mentions:
        close = _close_of(doc, mention)
        if close and acronym_of(doc[mention.end + 1 : close].text, mention.text):
            names.record_alias(mention.text, doc[mention.end + 1 : close].text)


class OtherName(NamedTuple):
    """An alternative name: main name, other name, main name position, and validity note.

    The note says since or until when the other name applies, if stated ("formerly")."""

    start: int
    name: str
    other: str
    when: str


def other_names(doc: Doc, mentions: Sequence[Mention], names: NameTable) -> Iterator[OtherName]:
    """Records names that the text itself says are one thing's: "Oslo (formerly Christiania)"."""
    starts = {m.start: m for m in sorted(mentions, key=lambda m: m.end) if m.is_name}
    ends = {m.end: m for m in sorted(mentions, key=lambda m: -m.start) if m.is_name}
    for end, mention in sorted(ends.items()):
        alternative = next(
            (starts[at] for at in range(end + 1, end + _BETWEEN) if at in starts), None
        )
        match = (
            _CALLED.fullmatch(doc[end : alternative.start].text)
            if alternative is not None
            else None
        )
        if (
            alternative is None
            or match is None
            or not _is_other_name(doc, mention, alternative, match)
        ):
            continue
        when = next((w for w in _WHEN.findall(match[0].lower()) if w in _TIMES), "also")
        names.record_alias(mention.text, alternative.text)
        if names.find(mention.text) is names.find(alternative.text):
            yield OtherName(mention.start, mention.text, alternative.text, when)


def _is_other_name(doc: Doc, mention: Mention, other: Mention, found: re.Match[str]) -> bool:
    """Tell whether both mentions may denote one thing, judging by types and neighbouring words.

    "Breslau, formerly Germany" says where a place was, and in "Lakeland, Florida (formerly
    ...)" either may be meant."""
    kinds = {mention.type, other.type} - {UNKNOWN}
    unlike = len(kinds) > 1 and (found["bare"] or "person" in kinds)
    if unlike or mention.text == other.text:
        return False
    if "place" in kinds:
        before = doc[mention.start - 1].text if mention.start else ""
        if before == "," or (found["bare"] and not found[0].startswith("(")):
            return False
    after = doc[other.end] if other.end < len(doc) else None
    return after is None or not (after.tag_ in _GOES_ON or after.lower_ in _INSIDE_NAMES)


def record_localities(doc: Doc, mentions: Sequence[Mention], names: NameTable) -> None:
    """Records full names of places: "Lakeland, Florida" is also "Lakeland"."""
    for place, mention in enumerate(mentions):
        if not (mention.is_name and doc[mention.end : mention.end + 1].text == ","):
            continue
        beside = next((m for m in mentions[place + 1 :] if m.start > mention.end), None)
        if beside is None or not beside.is_name or beside.start != mention.end + 1:
            continue
        inside, region = names.find(mention.text), names.find(beside.text)
        if inside and region and inside.type == region.type == "place" and inside is not region:
            names.record_alias(mention.text, f"{mention.text}, {beside.text}")


def read_brackets(
    doc: Doc, mentions: Sequence[Mention], names: NameTable
) -> Iterator[tuple[int, Nominal]]:
    """Yield bracketed statements following names, such as "(1912-1954)", each with a token
    index."""
    for place, mention in enumerate(mentions):
        close = _close_of(doc, mention)
        if close:
            inside = [m for m in mentions[place + 1 : place + 4] if mention.end < m.start < close]
            entity = names.find_or_create(mention.text, mention.type)
            for nominal in _in_brackets(doc, entity, inside, mention.end + 1, close):
                yield mention.start, nominal


def read_other_names(
    others: Sequence[OtherName], names: NameTable
) -> Iterator[tuple[int, Nominal]]:
    """Yield naming statements with the token index of the main name.

    The statement includes both names, since either may become canonical."""
    for other_name in others:
        entity = names.find(other_name.name)
        if entity is not None:
            name_literal = Literal(f"{other_name.name}, {other_name.when} {other_name.other}")
            yield other_name.start, Nominal(entity, "be called", name_literal, CERTAIN)


def _close_of(doc: Doc, mention: Mention) -> int:
    """Return the token index closing a short bracket after a name, or 0 without bracket."""
    if not mention.is_name or mention.end + 2 >= len(doc) or doc[mention.end].text != "(":
        return 0
    return next((token.i for token in doc[mention.end : mention.end + 12] if token.text == ")"), 0)


def _in_brackets(
    doc: Doc, entity: NamedEntity, inside: list[Mention], start: int, close: int
) -> Iterator[Nominal]:
    times = [m.value for m in inside if m.is_time and m.value is not None]
    if len(times) == 2 and entity.is_person and _DASH.fullmatch(doc[inside[0].end].text):
        yield Nominal(entity, "be born on", times[0], CERTAIN)
        yield Nominal(entity, "die on", times[1], CERTAIN)
    elif len(inside) == 1 and times and close > start + 1 and doc[start].lower_ in ("born", "b."):
        entity.types["person"] += 1
        born = "be born on" if "-" in times[0].value else "be born in"
        yield Nominal(entity, born, times[0], CERTAIN)
    elif entity.type in _DATED and [(m.start, m.end) for m in inside] == [(start, close)]:
        yield from (Nominal(entity, "be dated", value, LIKELY) for value in times)


def _read_apposition(
    token: Token, named: NamedEntity | None, arguments: Arguments
) -> Iterator[Nominal]:
    head = arguments.named_at(token.head)
    if not _follows_head(token, arguments) or _is_listed(token, arguments):
        return
    if head is not None and named is None:
        yield from _read_noun_type(head, token, arguments)
    elif named is not None and head is None and is_noun(token.head):
        if _is_enclosed(token) and not acronym_of(token.text, phrase_text(token.head).title()):
            return  # "the platform (Acme)": who makes it, or where it is from
        yield from _read_noun_type(named, token.head, arguments)
        arguments.join_kin(token.head, named)
    elif named and head and named is not head and _is_place_within(named, head, token):
        yield Nominal(head, "in", named, LIKELY)


def _is_enclosed(token: Token) -> bool:
    return token.left_edge.i > 0 and token.left_edge.nbor(-1).text in ("(", "[")


def _is_listed(token: Token, arguments: Arguments) -> bool:
    """Tell whether an apposition may continue a list instead of describing something."""
    if any(child.lower_ in ("a", "an") for child in token.lefts):
        return False
    return token.head.dep_ in ("conj", "appos") or any(
        child.dep_ in ("conj", "appos") and arguments.named_at(child) for child in token.children
    )


def _is_place_within(whole: NamedEntity, part: NamedEntity, token: Token) -> bool:
    """Return whether a place stands within the place after the comma, as in "Ross Island,
    Antarctica"."""
    return whole.type == part.type == "place" and token.nbor(-1).text == ","


def _follows_head(token: Token, arguments: Arguments) -> bool:
    """Tell whether an apposition directly follows and explains its head."""
    head = token.head
    start = token.left_edge.i
    mention = arguments.mention_at(head)
    end = mention.end if mention is not None else head.i + 1
    between = token.doc[end:start].text.strip()
    if len(between) > 3 and not (between[0] in "(," and between[-1] in "),"):
        return False
    articled = any(child.dep_ in ("det", "poss") for child in token.lefts)
    return articled or bool(kind_of_noun(token.lower_)) or arguments.named_at(token) is not None


def _read_noun_type(entity: NamedEntity, noun: Token, arguments: Arguments) -> Iterator[Nominal]:
    if noun.tag_ not in ("NN", "NNS", "NNP") or arguments.mention_at(noun) is not None:
        return
    if noun.tag_ == "NNS" and entity.type != "group":
        return
    if entity.is_person and not denotes_person(noun.lower_):
        return
    entity.nouns.add(find_lemma(noun.lower_, "noun"))
    for bound in arguments.find_descriptions("be", noun):
        if bound.object is not entity:
            yield Nominal(entity, bound.predicate, bound.object, CERTAIN)


def _before_name(
    token: Token, mention: Mention, entity: NamedEntity, arguments: Arguments
) -> Iterator[Nominal]:
    """ "Scott's ship Terra Nova", "psychologist Carl Rogers"."""
    noun = token.doc[mention.start - 1] if mention.start else None
    if noun is None or noun.tag_ != "NN" or not _belong_together(noun, token):
        return
    if entity.name.isupper() and not entity.is_person:
        return  # "server UI": the acronym is the noun
    for child in (*token.lefts, *noun.lefts):
        if child.dep_ == "poss" and child.i < mention.start:
            for owner in arguments.find_entities(child):
                if owner is not entity:
                    yield Nominal(owner, f"have {noun.lower_}", entity, CERTAIN)
    entity.nouns.add(noun.lower_)
    if kind_of_noun(noun.lower_):
        entity.types[kind_of_noun(noun.lower_)] += 2
        yield Nominal(entity, "be", Literal(core_text(noun)), LIKELY)


def _is_site(entity: NamedEntity, preposition: Token) -> bool:
    return preposition.lower_ == "of" or entity.type in ("place", "facility", "organization")


def _belong_together(noun: Token, name: Token) -> bool:
    """Tell whether a noun preceding a name describes it.

    "ship Terra Nova" does, "that winter Scott" does not."""
    if noun.head.i == name.i and noun.dep_ in ("compound", "nmod", "amod"):
        return True
    linked = name.head.i == noun.i and name.dep_ in ("appos", "compound")
    twins = noun.head.i == name.head.i and noun.dep_ == name.dep_
    return (linked or twins) and bool(kind_of_noun(noun.lower_))


def _after_name(
    token: Token, mention: Mention, entity: NamedEntity, arguments: Arguments
) -> Iterator[Nominal]:
    """ "Museum in Valentano", "Ross Island, Antarctica"."""
    for child in token.rights:
        placed = child.lower_ == "of" or (child.lower_ in _PLACED and entity.type in _SITED)
        if child.dep_ == "prep" and child.i == mention.end and placed:
            for target in preposition_targets(child)[:1]:
                target_entity = arguments.named_at(target)
                if (
                    target_entity is not None
                    and target_entity is not entity
                    and _is_site(target_entity, child)
                ):
                    yield Nominal(entity, child.lower_, target_entity, WEAK)
        elif child.dep_ == "npadvmod" and child.i > mention.end:
            target_entity = arguments.named_at(child)
            if (
                target_entity is not None
                and target_entity.type == entity.type == "place"
                and target_entity is not entity
            ):
                yield Nominal(entity, "in", target_entity, LIKELY)
