"""What noun phrases state without a verb: appositions, possession, places, dates in brackets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyoxigraph import Literal

from tgraph.extract.arguments import Arguments
from tgraph.extract.kinds import denotes_person, kind_of_noun
from tgraph.extract.names import Named, Names, acronym_of
from tgraph.extract.phrases import conjuncts, core_text, is_noun
from tgraph.extract.pipeline import lemma
from tgraph.extract.reading import Argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spacy.tokens import Doc, Span, Token

    from tgraph.extract.mentions import Mention

_CERTAIN, _LIKELY, _WEAK = 7.0, 6.0, 4.0
_DASH = re.compile(r"[-–—]+|to")


@dataclass(frozen=True, slots=True)
class Nominal:
    """A statement found in a noun phrase."""

    subject: Named
    predicate: str
    object: Argument
    strength: float


def nominals(sentence: Span, arguments: Arguments) -> Iterator[Nominal]:
    """The statements of a sentence's noun phrases, in reading order."""
    for token in sentence:
        if not is_noun(token):
            continue
        named = arguments.named_at(token)
        if token.dep_ == "appos":
            yield from _apposition(token, named, arguments)
        if named is not None and _is_root(token, arguments):
            yield from _before_name(token, named, arguments)
            yield from _after_name(token, named, arguments)


def acronyms(doc: Doc, mentions: Sequence[Mention], names: Names) -> None:
    """Records acronyms in brackets: "British Antarctic Expedition (BAE)"."""
    for mention in mentions:
        close = _close_of(doc, mention)
        if close and acronym_of(doc[mention.end + 1 : close].text, mention.text):
            names.same(mention.text, doc[mention.end + 1 : close].text)


def localities(doc: Doc, mentions: Sequence[Mention], names: Names) -> None:
    """Records full names of places: "Lakeland, Florida" is also "Lakeland"."""
    for place, mention in enumerate(mentions):
        if not (mention.is_name and mention.end + 1 < len(doc) and doc[mention.end].text == ","):
            continue
        beside = next((m for m in mentions[place + 1 :] if m.start > mention.end), None)
        if beside is None or not beside.is_name or beside.start != mention.end + 1:
            continue
        inside, around = names.find(mention.text), names.find(beside.text)
        if inside and around and inside.type == around.type == "place" and inside is not around:
            names.same(mention.text, f"{mention.text}, {beside.text}")


def bracketed(doc: Doc, mentions: Sequence[Mention], names: Names) -> Iterator[tuple[int, Nominal]]:
    """Statements in brackets after a name, such as "(1912-1954)", with the token of the name."""
    for place, mention in enumerate(mentions):
        close = _close_of(doc, mention)
        if close:
            inside = [m for m in mentions[place + 1 : place + 4] if mention.end < m.start < close]
            entity = names.get(mention.text, mention.type)
            for nominal in _in_brackets(doc, entity, inside, mention.end + 1, close):
                yield mention.start, nominal


def _close_of(doc: Doc, mention: Mention) -> int:
    """The token that closes a short bracket after a name, 0 where there is none."""
    if not mention.is_name or mention.end + 2 >= len(doc) or doc[mention.end].text != "(":
        return 0
    return next((token.i for token in doc[mention.end : mention.end + 12] if token.text == ")"), 0)


def _in_brackets(
    doc: Doc, entity: Named, inside: list[Mention], start: int, close: int
) -> Iterator[Nominal]:
    times = [m.value for m in inside if m.is_time and m.value is not None]
    if len(times) == 2 and entity.is_person and _DASH.fullmatch(doc[inside[0].end].text):
        yield Nominal(entity, "be born on", times[0], _CERTAIN)
        yield Nominal(entity, "die on", times[1], _CERTAIN)
    elif len(inside) == 1 and times and _is_birth(doc, start, close):
        entity.types["person"] += 1
        yield Nominal(
            entity, "be born on" if "-" in times[0].value else "be born in", times[0], _CERTAIN
        )
    elif len(inside) == 1 and (inside[0].start, inside[0].end) == (start, close):
        value = inside[0].value
        if value is not None and inside[0].is_time:
            yield Nominal(entity, "be dated", value, _LIKELY)


def _is_birth(doc: Doc, start: int, close: int) -> bool:
    return close > start + 1 and doc[start].lower_ in ("born", "b.")


def _is_root(token: Token, arguments: Arguments) -> bool:
    mention = arguments.mention_at(token)
    return mention is not None and token.doc[mention.start : mention.end].root.i == token.i


def _apposition(token: Token, named: Named | None, arguments: Arguments) -> Iterator[Nominal]:
    head = arguments.named_at(token.head)
    if not _follows(token, arguments):
        return
    if head is not None and named is None:
        yield from _is_a(head, token, arguments)
    elif named is not None and head is None and is_noun(token.head):
        yield from _is_a(named, token.head, arguments)
    elif named is not None and head is not None and _is_part(named, head, token):
        yield Nominal(head, "in", named, _LIKELY)


def _is_part(whole: Named, part: Named, token: Token) -> bool:
    """Whether two places stand as in "Ross Island, Antarctica"."""
    places = whole.type == part.type == "place" and whole is not part
    return places and token.nbor(-1).text == ","


def _follows(token: Token, arguments: Arguments) -> bool:
    """Whether an apposition stands right behind what it explains, and explains a thing."""
    head = token.head
    start = token.left_edge.i
    mention = arguments.mention_at(head)
    end = mention.end if mention is not None else head.i + 1
    between = token.doc[end:start].text.strip()
    if len(between) > 3 and not (between[0] in "(," and between[-1] in "),"):
        return False
    articled = any(child.dep_ in ("det", "poss") for child in token.lefts)
    return articled or bool(kind_of_noun(token.lower_)) or arguments.named_at(token) is not None


def _is_a(entity: Named, noun: Token, arguments: Arguments) -> Iterator[Nominal]:
    if noun.tag_ not in ("NN", "NNS", "NNP") or arguments.mention_at(noun) is not None:
        return
    if noun.tag_ == "NNS" and entity.type in ("person", "ship"):
        return
    if entity.is_person and not denotes_person(noun.lower_):
        return
    entity.nouns.add(lemma(noun.lower_, "noun"))
    for bound in arguments.described("be", noun):
        if bound.object is not entity:
            yield Nominal(entity, bound.predicate, bound.object, _CERTAIN)


def _before_name(token: Token, entity: Named, arguments: Arguments) -> Iterator[Nominal]:
    """ "Scott's ship Terra Nova", "psychologist Carl Rogers"."""
    mention = arguments.mention_at(token)
    assert mention is not None
    noun = token.doc[mention.start - 1] if mention.start else None
    if noun is None or noun.tag_ != "NN" or not _belong_together(noun, token):
        return
    for child in (*token.lefts, *noun.lefts):
        if child.dep_ == "poss" and child.i < mention.start:
            for owner in arguments.meant(child):
                if owner is not entity:
                    yield Nominal(owner, f"have {noun.lower_}", entity, _CERTAIN)
    entity.nouns.add(noun.lower_)
    if kind_of_noun(noun.lower_):
        entity.types[kind_of_noun(noun.lower_)] += 2
        yield Nominal(entity, "be", Literal(core_text(noun)), _LIKELY)


def _belong_together(noun: Token, name: Token) -> bool:
    """Whether a noun before a name describes it: "ship Terra Nova", but not "that winter Scott"."""
    if noun.head.i == name.i and noun.dep_ in ("compound", "nmod", "amod"):
        return True
    linked = name.head.i == noun.i and name.dep_ in ("appos", "compound")
    twins = noun.head.i == name.head.i and noun.dep_ == name.dep_
    return (linked or twins) and bool(kind_of_noun(noun.lower_))


def _after_name(token: Token, entity: Named, arguments: Arguments) -> Iterator[Nominal]:
    """ "Museum in Valentano", "Ross Island, Antarctica"."""
    mention = arguments.mention_at(token)
    assert mention is not None
    for child in token.rights:
        if child.dep_ == "prep" and child.i == mention.end and child.lower_ != "like":
            for target in (t for c in child.children if c.dep_ == "pobj" for t in conjuncts(c)):
                other = arguments.named_at(target)
                if other is not None and other is not entity:
                    yield Nominal(entity, child.lower_, other, _WEAK)
        elif child.dep_ == "npadvmod" and child.i > mention.end:
            other = arguments.named_at(child)
            if other is not None and other.type == entity.type == "place" and other is not entity:
                yield Nominal(entity, "in", other, _LIKELY)
