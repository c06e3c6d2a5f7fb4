"""Where an English text names something: named entities, capitalised spans, quoted titles.

spaCy's small recogniser misses many names of ships, works and institutions and cuts others short;
runs of capitalised words, joined over "of" and the like, find them. Where both see a name, the
longer reading wins unless it glues two names together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyoxigraph import Literal

from tgraph.extract.english.name_spans import (
    NAME_TAGS,
    SUFFIXES,
    TYPES,
    find_runs,
    inner_names,
    joined_places,
    outer_names,
    parts_of_title,
    run_end,
)
from tgraph.extract.english.parser import (
    find_lemma,
    hyphenated_start,
    is_common_word,
    is_speech_verb,
    text_of,
)
from tgraph.extract.entity_types import is_title, kind_of_name, kind_of_noun
from tgraph.extract.facts import UNKNOWN
from tgraph.extract.literals import find_literals
from tgraph.resources import word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

_TO_VERB = 5
_CAPTIONS = word_set("english", "captions")
_COMMON = word_set("english", "no_names")
_ARTICLES = frozenset({"the", "a", "an"})
_BEFORE = _ARTICLES | {"of", "and", "in", "at", "by"}
_INSIDE = frozenset({"of", "and", "in", "for", "at", "on", "&", "to", "from", "by", "with"})
_QUOTES = frozenset({'"', "“", "”", "''", "``", "‘", "’", "'"})
_TRAILING = frozenset({"'s", "’s", "'", "’", ",", ".", "-", "–", ":", ";"})
_QUOTED = re.compile(r"[\"“]([^\"“”]{2,70}?)[,.]?[\"”]|(?:``|'')\s?([^`'\"]{2,70}?)[,.]?\s?''")


@dataclass(frozen=True, slots=True)
class Mention:
    """A name or literal at document tokens ``start`` to ``end`` (exclusive).

    ``doubtful``: a single word that may owe its capital to its place at the start of a
    sentence."""

    start: int
    end: int
    text: str
    type: str
    value: Literal | None = None
    is_time: bool = False
    doubtful: bool = False

    @property
    def is_name(self) -> bool:
        return self.value is None


def find_mentions(doc: Doc, titles: Sequence[str] = ()) -> list[Mention]:
    """Return names and literals of a parsed text, sorted by start.

    Mentions do not overlap, except that a name inside a longer name ("Lake Ontario" in "Port
    Authority of Lake Ontario") follows it if both may be meant."""
    occupied = bytearray(len(doc))
    mentions: list[Mention] = []
    literals = _find_literals(doc)
    joined = [_create_mention(doc, *place) for place in joined_places(doc)]
    for source in (
        _find_titles(doc, titles),
        _find_quoted_titles(doc),
        joined,
        (literal for literal in literals if literal.is_time and not _inside_name(doc, literal)),
    ):
        _add_free_mentions(source, occupied, mentions)
    _add_free_mentions(
        sorted(_find_names(doc, occupied), key=lambda m: (m.start - m.end, m.start)),
        occupied,
        mentions,
    )
    main_titles = {title.lower() for title in titles[:1]}
    variants = [
        variant
        for mention in mentions
        if mention.is_name
        for variant in _find_variants(doc, mention, mention.text.lower() in main_titles)
    ]
    variants += joined
    _add_free_mentions(literals, occupied, mentions)
    distinct = {
        (m.start, -m.end): m for m in reversed(mentions + variants)
    }  # the first of each place
    return [distinct[place] for place in sorted(distinct)]


def _add_free_mentions(source: Iterable[Mention], taken: bytearray, found: list[Mention]) -> None:
    for mention in source:
        if mention.start < mention.end and not any(taken[mention.start : mention.end]):
            taken[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
            found.append(mention)


def _find_variants(doc: Doc, mention: Mention, is_title: bool) -> Iterator[Mention]:
    """Yield names inside longer names, and longer names around a mention."""
    bounds = mention.start, mention.end, mention.type
    spans = [*inner_names(doc, *bounds), *outer_names(doc, *bounds)]
    if is_title and mention.end - mention.start > 2:
        spans += parts_of_title(doc, mention.start, mention.end)
    for first, last, label in dict.fromkeys(spans):
        start, end = _trim_span(doc, first, last)
        if (start, end) != bounds[:2] and _worth_naming(doc, start, end):
            yield _create_mention(doc, start, end, label)


def _find_literals(doc: Doc) -> list[Mention]:
    mentions = []
    text = text_of(doc)
    for literal in find_literals(text):
        span = doc.char_span(literal.start, literal.end, alignment_mode="expand")
        if span is not None:
            words = text[literal.start : literal.end]
            mentions.append(
                Mention(span.start, span.end, words, "", literal.value, literal.is_time)
            )
    return mentions


def _inside_name(doc: Doc, literal: Mention) -> bool:
    """Tell whether a year belongs to a name: "2008 Summer Olympics"."""
    if literal.end >= len(doc) or literal.end - literal.start > 1:
        return False
    following = doc[literal.end]
    if following.text[0].isupper() and following.tag_ in NAME_TAGS:
        end = run_end(doc, literal.end, bytearray(len(doc)))
        if kind_of_name(doc[literal.end : end].text) == "event":
            return True
    before = doc[literal.start - 2 : literal.start].text if literal.start > 1 else ""
    if before.split(" ")[0] in ("Act", "War", "Treaty", "Battle") and before.endswith(" of"):
        return True
    kind = doc[literal.start].ent_type_
    return kind in ("EVENT", "WORK_OF_ART", "LAW") and following.ent_iob_ == "I"


def _find_titles(doc: Doc, titles: Sequence[str]) -> Iterator[Mention]:
    """Yield repetitions of the document title, regardless of capitals."""
    lowered = text_of(doc).lower()
    if len(lowered) != len(text_of(doc)):
        return
    for place, title in enumerate(titles):
        if _is_name_like(title, main=place == 0):
            for match in re.finditer(rf"(?<!\w){re.escape(title.lower())}(?!\w)", lowered):
                span = doc.char_span(*match.span())
                common = place == 0 and " " in title
                if span is not None and _stands_alone(doc, span, common):
                    label = next((TYPES.get(t.ent_type_, "") for t in span if t.ent_type_), "")
                    yield _create_mention(doc, span.start, span.end, label)


def _is_name_like(title: str, main: bool) -> bool:
    """Tell whether a title counts as name: main titles, single words, headings with inner
    capitals."""
    words = title.split()
    if words[0].lower() in _ARTICLES and title[len(words[0]) :].islower():
        return False
    return main or len(words) == 1 or any(word[0].isupper() for word in words[1:])


def _stands_alone(doc: Doc, span: Span, common: bool) -> bool:
    """Tell whether a title match stands outside longer names."""
    neighbours = [doc[i] for i in (span.start - 1, span.end) if 0 <= i < len(doc)]
    return (common or span.text[0].isupper()) and not any(
        token.tag_ in NAME_TAGS or (token.ent_iob_ == "I" and token.i == span.end)
        for token in neighbours
    )


def _find_quoted_titles(doc: Doc) -> Iterator[Mention]:
    for match in _QUOTED.finditer(text_of(doc)):
        group = 1 if match[1] else 2
        span = doc.char_span(*match.span(group), alignment_mode="contract")
        if span is not None and _is_title_case(span) and not _is_said(span):
            yield _create_mention(doc, span.start, span.end, "work")


def _is_said(span: Span) -> bool:
    """Whether a verb of saying follows a quotation: "Yes, sir," he answered."""
    return any(map(is_speech_verb, span.doc[span.end : span.end + _TO_VERB]))


def _is_title_case(span: Span) -> bool:
    words = [token for token in span if token.is_alpha]
    capitals = sum(token.text[0].isupper() for token in words)
    return (
        0 < len(words) <= 9
        and words[0].text[0].isupper()
        and capitals >= (len(words) + 1) // 2
        and span[-1].text not in ("!", "?")
        and not any(token.lower_ in ("i", "you") for token in words)
    )


def _find_names(doc: Doc, taken: bytearray) -> Iterator[Mention]:
    spans = [_trim_span(doc, start, end) for start, end in find_runs(doc, taken)]
    ents = list(_clean_entities(doc, taken))
    for start, end in spans:
        inside = [
            ent for ent in ents if ent[0] < end and start < ent[1] and not doc[ent[0]].is_digit
        ]
        if _worth_naming(doc, start, end):
            yield from _reconcile_entities(doc, start, end, inside)
    for start, end, label in ents:
        overlapped = any(a < end and start < b for a, b in spans) or _is_caption(doc, start)
        if not overlapped and any(token.text[:1].isupper() for token in doc[start:end]):
            yield _create_mention(doc, start, end, label)


def _clean_entities(doc: Doc, taken: bytearray) -> Iterator[tuple[int, int, str]]:
    """Yield recognised entities without articles, cut at commas and at tokens already taken."""
    for ent in doc.ents:
        if ent.label_ not in TYPES:
            continue
        start = ent.start
        for token in ent:
            if token.text == "," and doc[token.i + 1 : token.i + 2].text in SUFFIXES:
                continue
            joined = doc[token.i - 1].lower_ in _INSIDE if token.i > start else True
            glued = token.lower_ == "the" and not joined
            if taken[token.i] or glued or token.text in (",", "(", ")", ";", ":", "/", '"'):
                if start < token.i:
                    yield *_trim_span(doc, start, token.i), TYPES[ent.label_]
                start = token.i + 1
        start, end = _trim_span(doc, start, ent.end)
        while end > start and doc[end - 1].text[0].islower() and doc[end - 2].text != "-":
            end -= 1
        if start < end:
            yield from _split_and(doc, start, end, TYPES[ent.label_])


def _split_and(doc: Doc, start: int, end: int, label: str) -> Iterator[tuple[int, int, str]]:
    """Yield two names for "Wast Water and Windermere", one name for "College of Arts and
    Sciences"."""
    joints = [i for i in range(start + 1, end - 1) if doc[i].lower_ in ("and", "&")]
    if joints and label in ("organization", "facility", "person"):
        left_span, right = doc[start : joints[0]], doc[joints[0] + 1 : end]
        is_single_name = kind_of_noun(right[-1].lower_) or any(
            token.lower_ == "of" for token in left_span
        )
        if (
            not is_single_name
            and doc[joints[0]].text != "&"
            and not kind_of_noun(left_span[-1].lower_)
        ):
            yield *_trim_span(doc, start, joints[0]), label
            yield *_trim_span(doc, joints[0] + 1, end), label
            return
    yield start, end, label


def _is_caption(doc: Doc, start: int) -> bool:
    """Tell whether a caption ("Table S2") begins at or right before a token."""
    return any(
        token.lower_.rstrip(".") in _CAPTIONS for token in doc[max(0, start - 1) : start + 1]
    )


def _worth_naming(doc: Doc, start: int, end: int) -> bool:
    if start < end and _is_caption(doc, start):
        return False
    if end - start > 1:
        words = doc[start:end]
        return not all(t.is_upper for t in words) or any(t.ent_iob_ == "I" for t in words)
    word = doc[start].text if start < end else ""
    return len(word) > 1 and word.lower() not in _COMMON and not word.isdigit()


def _reconcile_entities(
    doc: Doc, start: int, end: int, ents: list[tuple[int, int, str]]
) -> Iterator[Mention]:
    """Yield one mention for a capitalised run with its entities, or several mentions if the run
    joins names."""
    if start >= end:
        return
    if len(ents) >= 2 and _is_glued(doc, start, end, ents):
        yield from (_create_mention(doc, *ent) for ent in ents)
        return
    last, close, kind = ents[-1] if ents else (start, end, "")
    if kind == "person" and start < last and close == end and doc[last - 1].ent_type_:
        yield _create_mention(doc, last, close, kind)
        end = last
    if len(ents) == 1 and ents[0][0] <= start and ents[0][1] >= end:
        start, end, _ = ents[0]
    label = max(ents, key=lambda ent: ent[1] - ent[0])[2] if ents else ""
    yield _create_mention(doc, start, end, label)


def _is_glued(doc: Doc, start: int, end: int, ents: list[tuple[int, int, str]]) -> bool:
    words = {token.lower_ for token in doc[start:end]}
    if ents[0][2] == "person" and "of" in words:
        return ents[0][1] - ents[0][0] > 1 and not is_title(doc[start].text)
    if end - start > 6 and not words & {"of"}:
        return True
    covered = sum(last - first for first, last, _ in ents)
    between = {token.lower_ for token in doc[ents[0][1] : ents[1][0]]}
    return covered >= end - start - 1 and not between & {"of", "de", "-"}


def _trim_span(doc: Doc, start: int, end: int) -> tuple[int, int]:
    while start < end and _is_leading(doc[start]):
        start += 1
    while end > start and (doc[end - 1].lower_ in _TRAILING or doc[end - 1].text in _QUOTES):
        end -= 1
    return start, end


def _is_leading(token: Token) -> bool:
    """Tell whether a word preceding a name lies outside: articles, "of", opening adverbs."""
    if token.lower_ in _BEFORE or not token.text[0].isalnum() or _describes_person(token):
        return True
    return token.is_sent_start is True and token.tag_.startswith("RB")


def _describes_person(token: Token) -> bool:
    """Tell whether a capitalised noun preceding a person's name lies outside: "Drummer Jack
    Irons"."""
    noun = find_lemma(token.lower_, "noun")
    if not (kind_of_noun(noun) == "person" or noun.endswith(("ist", "man"))) or is_title(noun):
        return False
    following = token.doc[token.i + 1 : token.i + 2]
    return any(t.ent_type_ == "PERSON" and t.ent_iob_ == "B" for t in following)


def _create_mention(doc: Doc, start: int, end: int, label: str) -> Mention:
    while end - start > 1 and doc[start].text == doc[start + 1].text:
        start += 1
    if start > 1 and doc[start - 2].is_lower:
        start = hyphenated_start(doc, start)
    text = doc[start:end].text
    opens = end - start == 1 and not label and doc[start].is_sent_start is True
    doubtful = opens and is_common_word(text)
    return Mention(start, end, text, kind_of_name(text, label) or UNKNOWN, doubtful=doubtful)
