"""Reads the prose of an English chunk: parse, name, resolve, state.

One pass over all blocks finds the names, so that "Scott" on the first line can join "Robert Falcon
Scott" on the last; a second pass goes through the sentences in order and states what they say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from pyoxigraph import Literal

from tgraph.extract.english import parser
from tgraph.extract.english.arguments import Arguments, acronyms, bracketed, localities, nominals
from tgraph.extract.english.clauses import Statement, statements
from tgraph.extract.english.coreference import Discourse
from tgraph.extract.english.mentions import Mention, find_mentions
from tgraph.extract.english.parser import lemma, measured, phrase_bounds, phrase_text, verb_lemma
from tgraph.extract.entity_types import kind_of_noun
from tgraph.extract.facts import (
    MENTIONS,
    WEAK,
    Argument,
    ChunkReading,
    NamedEntity,
    NameTable,
)
from tgraph.extract.literals import is_number
from tgraph.model import Segment

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

_WHERE = frozenset({"in", "at", "to", "from", "near", "into", "off", "through", "across", ","})
_SPEECH = re.compile(
    r"[\"“](?=\w)[^\"“”]*[.!?,—-][\"”]|(?<!\w)['‘](?=\w).{2,600}?[.!?,—-]['’](?!\w)", re.DOTALL
)
_PLAIN = frozenset({"man", "woman", "one", "other", "others", "first", "last", "name", "result"})
_SPOKEN_OF = frozenset({"nsubj", "nsubjpass", "dobj", "attr", "pobj"})
_LEAST_NOTED = 5
_SURE, _RESOLVED, _LOOSE = 8.0, 6.0, 5.0


def read(blocks: Sequence[Segment], titles: Sequence[str], names: NameTable) -> ChunkReading:
    """The reading of a chunk's prose blocks. ``titles``, the document's first, are known names."""
    docs = parser.analyse([block.text for block in blocks])
    mentions = without_common_words(docs, [find_mentions(doc, titles) for doc in docs])
    for doc, found in zip(docs, mentions, strict=True):
        for mention in found:
            if mention.is_name:
                located = mention.start > 0 and doc[mention.start - 1].lower_ in _WHERE
                names.add(mention.text, mention.type, located=located)
    names.link()
    for doc, found in zip(docs, mentions, strict=True):
        acronyms(doc, found, names)
        localities(doc, found, names)
    reading = ChunkReading(names)
    topic = names.find(titles[0]) if titles else None
    discourse = Discourse(topic if topic is not None and topic.mentions > 1 else None)
    salient = _salient(docs, titles)
    for block, doc, found in zip(blocks, docs, mentions, strict=True):
        arguments = Arguments(doc, found, names, discourse, salient)
        _ProseReader(reading, block, arguments, topic).read(doc, found)
    return reading


@dataclass
class _ProseReader:
    _reading: ChunkReading
    _block: Segment
    _arguments: Arguments
    _topic: NamedEntity | None

    def read(self, doc: Doc, mentions: Sequence[Mention]) -> None:
        names = self._reading.names
        for mention in mentions:
            if mention.is_name:
                span = doc[mention.start : mention.end]
                entity = names.get(mention.text, mention.type)
                self._reading.see(entity, self._block, span.start_char, span.end_char)
        speech = _speech(doc.text)
        brackets = list(bracketed(doc, mentions, names))
        for sentence in doc.sents:
            named = self._arguments.prepare(sentence)
            before = len(self._reading.facts)
            within = (n for place, n in brackets if sentence.start <= place < sentence.end)
            for nominal in chain(within, nominals(sentence, self._arguments)):
                self._add(*nominal, sentence)
            for statement in statements(sentence):
                if any(start <= statement.verb.idx < end for start, end in speech):
                    self._reading.dropped["direct speech"] += 1
                else:
                    self._state(statement, sentence)
            self._amount_rest(named, sentence, before)
            self._mention_rest(named, sentence, before)
            if len(self._reading.facts) == before:
                self._note(sentence)
        self._reading.dropped += self._arguments.dropped

    def _amount_rest(self, named: list[NamedEntity], sentence: Span, before: int) -> None:
        """A weak edge to a date or amount that no statement holds, from what is named first."""
        facts = self._reading.facts[before:]
        about = facts[0].subject if facts else self._topic or (named[0] if named else None)
        about = self._topic if self._topic in named else about
        stated = {fact.object for fact in facts if isinstance(fact.object, Literal)}
        if about is None:
            return
        for mention in self._arguments.literals(sentence):
            if mention.value is not None and mention.value not in stated:
                predicate = _leading_to(mention, sentence.doc)
                self._add(about, predicate, mention.value, WEAK, sentence)

    def _state(self, statement: Statement, sentence: Span) -> None:
        if self._is_inverse(statement):
            self._state_inverse(statement, sentence)
            return
        subjects = self._arguments.subjects(statement.subject)
        if not subjects:
            return
        bounds = self._arguments.objects(statement.predicate, statement.object)
        if verb_lemma(statement.verb) == "be" and statement.object.dep_ == "attr":
            self._learn(subjects, statement.object)
        strength = self._strength(statement)
        for subject in subjects:
            for bound in bounds:
                self._add(subject, *bound, strength, sentence)

    def _is_inverse(self, statement: Statement) -> bool:
        """ "The current editor is Solovej": a description that a name follows."""
        return (
            verb_lemma(statement.verb) == "be"
            and statement.object.dep_ in ("attr", "conj")
            and statement.subject.tag_ in ("NN", "NNS")
            and (named := self._arguments.named_at(statement.object)) is not None
            and named.type != "group"
            and self._arguments.named_at(statement.subject) is None
            and statement.subject.lower_ not in _PLAIN
        )

    def _state_inverse(self, statement: Statement, sentence: Span) -> None:
        entity = self._arguments.named_at(statement.object)
        assert entity is not None
        if any(child.tag_ == "POS" for child in statement.object.children):
            return
        entity.nouns.add(lemma(statement.subject.lower_, "noun"))
        topic = self._topic
        for bound in self._arguments.described(statement.predicate, statement.subject):
            if isinstance(bound.object, NamedEntity):
                self._add(entity, *bound, _SURE, sentence)
            elif topic is not None and topic is not entity and topic.mentions > 1:
                self._add(topic, f"have {bound.object.value}", entity, _LOOSE, sentence)
            else:
                self._add(entity, *bound, _LOOSE, sentence)

    def _learn(self, subjects: Sequence[NamedEntity], noun: Token) -> None:
        word = lemma(noun.lower_, "noun")
        for subject in subjects:
            if noun.tag_ in ("NN", "NNS"):
                subject.nouns.add(word)
            if kind_of_noun(word):
                subject.types[kind_of_noun(word)] += 2

    def _strength(self, statement: Statement) -> float:
        named = self._arguments.named_at(statement.subject) is not None
        strength = _SURE if named and statement.direct else _RESOLVED
        return strength - 2 if statement.reported else strength

    def _mention_rest(self, named: list[NamedEntity], sentence: Span, before: int) -> None:
        """A weak edge from the topic to what a sentence names but says nothing about."""
        if self._topic is None:
            return
        facts = self._reading.facts[before:]
        stated = {id(end) for fact in facts for end in (fact.subject, fact.object)}
        for entity in named:
            if id(entity) not in stated and entity is not self._topic:
                self._add(self._topic, MENTIONS, entity, WEAK, sentence)

    def _note(self, sentence: Span) -> None:
        """A weak edge from the topic to what a sentence speaks of that names nothing, so that it
        can be found and cited."""
        nouns = (t for t in sentence if t.dep_ in _SPOKEN_OF and t.tag_ in ("NN", "NNS"))
        longest = max(map(phrase_text, nouns), key=len, default="")
        if self._topic is not None and len(sentence) >= _LEAST_NOTED and longest:
            self._add(self._topic, MENTIONS, Literal(longest), WEAK, sentence)

    def _add(
        self, subject: NamedEntity, predicate: str, obj: Argument, strength: float, sentence: Span
    ) -> None:
        if subject is obj or not predicate:
            return
        if isinstance(obj, NamedEntity):
            if predicate == "be" and subject.is_person and obj.is_person:
                self._reading.dropped["two people equated"] += 1
                return
        elif not any(map(str.isalnum, obj.value)):
            return
        span = sentence.start_char, sentence.end_char
        if span[0] >= span[1]:
            return
        for entity in (subject, obj):
            if isinstance(entity, NamedEntity):
                self._reading.see(entity, self._block, *span)
        self._reading.state(subject, predicate, obj, strength, self._block, span)


def _leading_to(mention: Mention, doc: Doc) -> str:
    """The predicate of a literal that no statement holds; empty for numbers of nothing known."""
    if mention.value is not None and is_number(mention.value):
        return measured(doc[mention.end - 1])
    return "date" if mention.is_time else "amount"


def _speech(text: str) -> list[tuple[int, int]]:
    """Where somebody speaks: what is said there isn't stated by the text."""
    return [match.span() for match in _SPEECH.finditer(text) if len(match.group().split()) > 4]


def without_common_words(docs: Sequence[Doc], mentions: list[list[Mention]]) -> list[list[Mention]]:
    """Leaves out single words that are as often small, or that only open sentences."""
    small = Counter(token.text for doc in docs for token in doc if token.text[:1].islower())
    capital = Counter(m.text for found in mentions for m in found if m.end - m.start == 1)
    sure = {
        word
        for found in mentions
        for m in found
        if m.is_name and not m.doubtful
        for word in m.text.split()
    }

    def is_kept(m: Mention) -> bool:
        often = small[m.text.lower()] < max(1, capital[m.text])
        return not m.is_name or (often and (not m.doubtful or m.text in sure))

    return [list(filter(is_kept, found)) for found in mentions]


def _salient(docs: Sequence[Doc], titles: Sequence[str]) -> frozenset[str]:
    """Common phrases of two words or more that recur in the chunk or are its title or a heading."""
    counts = Counter(text for doc in docs for text in _phrases(doc))
    known = {title.lower() for title in titles}
    return frozenset(text for text, count in counts.items() if count > 1 or text in known)


def _phrases(doc: Doc) -> Iterator[str]:
    for before, token in pairwise(doc):
        if token.tag_ in ("NN", "NNS") and before.dep_ in ("compound", "amod"):
            start, end = phrase_bounds(token, whole=False)
            if end - start > 1:
                yield doc[start:end].text.lower()
