"""Reads the prose of an English chunk: parse, name, resolve, state.

One pass over all blocks finds the names, so that "Scott" on the first line can join "Robert Falcon
Scott" on the last; a second pass goes through the sentences in order and states what they say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from pyoxigraph import Literal

from tgraph.extract.english import parser
from tgraph.extract.english.arguments import Arguments, KnownPhrases
from tgraph.extract.english.beings import find_characters, learn_genders
from tgraph.extract.english.clauses import TokenStatement, read_statements, subjects_of
from tgraph.extract.english.coreference import Discourse, is_definite
from tgraph.extract.english.mentions import Mention, find_mentions
from tgraph.extract.english.nominals import (
    Nominal,
    OtherName,
    find_nominals,
    other_names,
    read_brackets,
    read_other_names,
    record_acronyms,
    record_localities,
)
from tgraph.extract.english.parser import (
    find_lemma,
    number_predicate,
    phrase_bounds,
    phrase_text,
    text_of,
    verb_lemma,
)
from tgraph.extract.english.speech import (
    Dialogue,
    Utterance,
    find_utterances,
    is_asked,
    spoken_spans,
)
from tgraph.extract.entity_types import kind_of_noun
from tgraph.extract.facts import MENTIONS, WEAK, Argument, ChunkReading, NamedEntity, NameTable
from tgraph.extract.literals import is_number
from tgraph.model import Segment

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

_WHERE = frozenset({"in", "at", "to", "from", "near", "into", "off", "through", "across", ","})
_PLAIN = frozenset({"man", "woman", "one", "other", "others", "first", "last", "name", "result"})
_SPOKEN_OF = frozenset({"nsubj", "nsubjpass", "dobj", "attr", "pobj"})
_FIRST_WORDS = 12
_SURE, _RESOLVED, _LOOSE, _SAID = 8.0, 6.0, 5.0, 4.0


def read_english(
    blocks: Sequence[Segment], titles: Sequence[str], names: NameTable
) -> ChunkReading:
    """The reading of a chunk's prose blocks. ``titles``, the document's first, are known names."""
    docs = parser.analyse_texts([block.text for block in blocks])
    mentions = without_common_words(docs, [find_mentions(doc, titles) for doc in docs])
    for doc, doc_mentions in zip(docs, mentions, strict=True):
        for mention in doc_mentions:
            if mention.is_name:
                located = mention.start > 0 and doc[mention.start - 1].lower_ in _WHERE
                names.add(mention.text, mention.type, located=located)
    names.link()
    names_by_doc: list[list[OtherName]] = []
    for doc, doc_mentions in zip(docs, mentions, strict=True):
        record_acronyms(doc, doc_mentions, names)
        record_localities(doc, doc_mentions, names)
        names_by_doc.append(list(other_names(doc, doc_mentions, names)))
    reading = ChunkReading(names)
    topic = names.find(titles[0]) if titles else None
    discourse = Discourse(topic if topic is not None and topic.mentions > 1 else None)
    known_phrases = KnownPhrases(
        _salient_phrases(docs, titles), find_characters(docs, mentions, names)
    )
    learn_genders(docs, mentions, names, known_phrases.characters)
    dialogue = Dialogue()
    for block, doc, doc_mentions, doc_names in zip(
        blocks, docs, mentions, names_by_doc, strict=True
    ):
        spoken = find_utterances(doc, doc_mentions)
        places = [(u.first, u.stop + 1) for u in spoken]
        arguments = Arguments(doc, doc_mentions, names, discourse, known_phrases, places)
        _ProseReader(reading, block, arguments, topic, dialogue, spoken).read(
            doc, doc_mentions, doc_names
        )
    reading.join_names()
    return reading


@dataclass
class _ProseReader:
    _reading: ChunkReading
    _block: Segment
    _arguments: Arguments
    _topic: NamedEntity | None
    _dialogue: Dialogue
    _utterances: Sequence[Utterance]

    def read(self, doc: Doc, mentions: Sequence[Mention], others: Sequence[OtherName]) -> None:
        names = self._reading.names
        for mention in mentions:
            if mention.is_name:
                span = doc[mention.start : mention.end]
                entity = names.find_or_create(mention.text, mention.type)
                self._reading.record_mention(entity, self._block, span.start_char, span.end_char)
        brackets = [*read_brackets(doc, mentions, names), *read_other_names(others, names)]
        if not self._utterances:
            self._dialogue.narration()
        for sentences, utterances in _group_sentences(list(doc.sents), self._utterances):
            entities_by_sentence = [self._arguments.prepare(sentence) for sentence in sentences]
            for utterance in utterances:
                self._attribute_utterance(utterance, doc)
            for sentence, entities in zip(sentences, entities_by_sentence, strict=True):
                nominals_inside = (
                    n for place, n in brackets if sentence.start <= place < sentence.end
                )
                self._read_sentence(sentence, entities, utterances, nominals_inside)
        if self._utterances and any(t.is_sent_start for t in doc[self._utterances[-1].last + 1 :]):
            self._dialogue.narration()
        self._reading.dropped += self._arguments.dropped

    def _read_sentence(
        self,
        sentence: Span,
        named: list[NamedEntity],
        utterances: Sequence[Utterance],
        brackets: Iterable[Nominal],
    ) -> None:
        before = len(self._reading.facts)
        for nominal in chain(brackets, find_nominals(sentence, self._arguments)):
            self._add_fact(*nominal, sentence)
        attributing = {u.verb.i for u in utterances if u.verb is not None}
        for statement in read_statements(sentence):
            if statement.verb.i in attributing:
                continue
            containing = (u for u in utterances if u.start <= statement.verb.idx < u.end)
            utterance = next(containing, None)
            if utterance is None:
                self._add_statement(statement, sentence)
            elif not utterance.start <= statement.subject.idx < utterance.end:
                continue  # a command: who is told to do it isn't told of
            elif not is_asked(text_of(sentence.doc), statement.verb.idx, utterance.end):
                self._add_statement(statement, sentence, most=_SAID)
        for utterance in utterances:
            self._record_quotation(utterance, sentence)
        self._amount_rest(sentence, before)
        self._mention_rest(named, sentence, before)
        if len(self._reading.facts) == before:
            self._note_sentence(sentence)

    def _attribute_utterance(self, utterance: Utterance, doc: Doc) -> None:
        """Determine an utterance's speaker and listener, from surrounding words or turn order."""
        somebody = self._arguments.somebody
        if not (utterance.follows or utterance.goes_on):
            self._dialogue.narration()
        if utterance.goes_on:
            utterance.by, utterance.to = self._dialogue.latest_speakers
        else:
            speaker_token = utterance.speaker or utterance.beat
            by = somebody(speaker_token) if speaker_token is not None else None
            is_unknown = utterance.speaker is not None and by is None
            utterance.by = self._dialogue.next_turn(by, is_unknown=is_unknown)
            utterance.to = self._dialogue.addressee
        utterance.sure = utterance.goes_on or utterance.speaker is not None
        if utterance.listener is not None:
            utterance.to = somebody(utterance.listener) or utterance.to
        elif utterance.calls is not None:
            utterance.to = self._reading.names.find_or_create(
                utterance.calls.text, utterance.calls.type
            )
        if utterance.to is utterance.by:
            utterance.to = None
        self._dialogue.listens(utterance.to)
        if utterance.by is not None:
            spoken = doc[utterance.first : utterance.stop + 1]
            self._arguments.speak(spoken, utterance.by, utterance.to)

    def _record_quotation(self, utterance: Utterance, sentence: Span) -> None:
        """Record who says the quoted words of a sentence; without speaker, record only the
        words."""
        text = text_of(sentence.doc)
        for start, end in spoken_spans(
            sentence.doc, utterance, sentence.start_char, sentence.end_char
        ):
            predicate = "ask" if text[end - 1] == "?" else "say"
            words = Literal(text[start:end])
            if utterance.by is None:
                if self._topic is not None:
                    self._add_fact(self._topic, MENTIONS, words, WEAK, sentence)
                continue
            strength = _RESOLVED if utterance.sure else _SAID
            self._add_fact(utterance.by, predicate, words, strength, sentence)
            if utterance.to is not None and start <= utterance.start + 1:
                self._add_fact(utterance.by, "say to", utterance.to, strength, sentence)

    def _amount_rest(self, sentence: Span, before: int) -> None:
        """Add weak edges to dates and amounts missing from statements.

        The subject is the verb's subject if a number counts something, otherwise the edge is a
        mention from the topic."""
        stated_objects = {fact.object for fact in self._reading.facts[before:]}
        for mention in self._arguments.literals(sentence):
            if mention.value is None or mention.value in stated_objects:
                continue
            counted = _find_counted(mention, sentence, self._arguments, self._topic)
            if counted is not None:
                self._add_fact(*counted, mention.value, WEAK, sentence)
            elif self._topic is not None and not is_number(mention.value):
                self._add_fact(self._topic, MENTIONS, mention.value, WEAK, sentence)

    def _add_statement(
        self, statement: TokenStatement, sentence: Span, most: float = _SURE
    ) -> None:
        if self._is_inverse(statement):
            self._state_inverse(statement, sentence)
            return
        subjects = self._arguments.subjects(statement.subject)
        if not subjects:
            return
        bounds = self._arguments.objects(statement.predicate, statement.object)
        if verb_lemma(statement.verb) == "be" and statement.object.dep_ == "attr":
            self._learn_description(subjects, statement.object)
        strength = min(self._statement_strength(statement), most)
        for subject in subjects:
            for bound in bounds:
                self._add_fact(subject, *bound, strength, sentence)

    def _is_inverse(self, statement: TokenStatement) -> bool:
        """Tell whether a statement describes a subsequent name: "The current editor is
        Solovej"."""
        return (
            verb_lemma(statement.verb) == "be"
            and statement.object.dep_ == "attr"
            and statement.subject.tag_ == "NN"
            and (object_entity := self._arguments.named_at(statement.object)) is not None
            and object_entity.type != "group"
            and self._arguments.named_at(statement.subject) is None
            and statement.subject.lower_ not in _PLAIN
        )

    def _state_inverse(self, statement: TokenStatement, sentence: Span) -> None:
        entity = self._arguments.named_at(statement.object)
        assert entity is not None
        if any(child.tag_ == "POS" for child in statement.object.children):
            return
        entity.nouns.add(find_lemma(statement.subject.lower_, "noun"))
        topic = self._topic
        for bound in self._arguments.find_descriptions(statement.predicate, statement.subject):
            if isinstance(bound.object, NamedEntity):
                self._add_fact(entity, *bound, _SURE, sentence)
            elif topic is not None and topic is not entity and topic.mentions > 1:
                self._add_fact(topic, f"have {bound.object.value}", entity, _LOOSE, sentence)
            else:
                self._add_fact(entity, *bound, _LOOSE, sentence)

    def _learn_description(self, subjects: Sequence[NamedEntity], noun: Token) -> None:
        word = find_lemma(noun.lower_, "noun")
        for subject in subjects:
            if noun.tag_ in ("NN", "NNS"):
                subject.nouns.add(word)
            if kind_of_noun(word):
                subject.types[kind_of_noun(word)] += 2

    def _statement_strength(self, statement: TokenStatement) -> float:
        is_named = self._arguments.named_at(statement.subject) is not None
        strength = _SURE if is_named and statement.direct else _RESOLVED
        return strength - 2 if statement.reported else strength

    def _mention_rest(self, named: list[NamedEntity], sentence: Span, before: int) -> None:
        """Add weak edges from the topic to named entities without statements."""
        if self._topic is None:
            return
        facts = self._reading.facts[before:]
        stated_ends = {id(end) for fact in facts for end in (fact.subject, fact.object)}
        for entity in named:
            if id(entity) not in stated_ends and entity is not self._topic:
                self._add_fact(self._topic, MENTIONS, entity, WEAK, sentence)

    def _note_sentence(self, sentence: Span) -> None:
        """Add a weak edge from the topic to a nameless sentence, making the sentence searchable
        and citable.

        The object is the longest noun phrase, otherwise the first words."""
        nouns = (t for t in sentence if t.dep_ in _SPOKEN_OF and t.tag_ in ("NN", "NNS"))
        longest = max(map(phrase_text, nouns), key=len, default="") or _first_words(sentence)
        if self._topic is not None and longest:
            self._add_fact(self._topic, MENTIONS, Literal(longest), WEAK, sentence)

    def _add_fact(
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
                self._reading.record_mention(entity, self._block, *span)
        self._reading.state(subject, predicate, obj, strength, self._block, span)


def _group_sentences(
    sentences: Sequence[Span], utterances: Sequence[Utterance]
) -> Iterator[tuple[Sequence[Span], list[Utterance]]]:
    """Yield sentences in order, grouping sentences covered by one utterance with its
    attribution."""
    begin, waiting = 0, list(utterances)
    while begin < len(sentences):
        end, inside = begin + 1, []
        while waiting and waiting[0].first < sentences[end - 1].end:
            inside.append(waiting.pop(0))
            while end < len(sentences) and inside[-1].last >= sentences[end - 1].end:
                end += 1
        yield sentences[begin:end], inside
        begin = end


def _find_counted(
    mention: Mention, sentence: Span, arguments: Arguments, topic: NamedEntity | None
) -> tuple[NamedEntity, str] | None:
    """Return the entity counted by an unstated number, plus the predicate."""
    assert mention.value is not None
    number = sentence.doc[mention.end - 1]
    predicate = number_predicate(number) if is_number(mention.value) else ""
    verb = next((token for token in number.ancestors if token.tag_.startswith("VB")), None)
    if not predicate or verb is None or any(child.tag_ == "MD" for child in verb.children):
        return None
    if predicate.startswith("number") and number.head.dep_ != "dobj":
        return None
    for subject in subjects_of(verb):
        if entities := arguments.find_entities(subject):
            return entities[0], predicate
        measure = predicate.startswith("have") and is_definite(subject)
        if (
            topic is not None
            and measure
            and verb.dep_ == "ROOT"
            and not arguments.is_narrowed(subject)
        ):
            return topic, predicate
    return None


def _first_words(sentence: Span) -> str:
    words = " ".join(sentence[:_FIRST_WORDS].text.split()).strip("\"'“”‘’ ")
    return words if any(map(str.isalpha, words)) else ""


def without_common_words(docs: Sequence[Doc], mentions: list[list[Mention]]) -> list[list[Mention]]:
    """Return mentions without single words that are equally often lowercase, or only open
    sentences."""
    small = Counter(token.text for doc in docs for token in doc if token.text[:1].islower())
    capital = Counter(
        m.text for doc_mentions in mentions for m in doc_mentions if m.end - m.start == 1
    )
    sure = {
        word
        for doc_mentions in mentions
        for m in doc_mentions
        if m.is_name and not m.doubtful
        for word in m.text.split()
    }

    def is_kept(m: Mention) -> bool:
        often = small[m.text.lower()] < max(1, capital[m.text])
        return not m.is_name or (often and (not m.doubtful or m.text in sure))

    return [list(filter(is_kept, doc_mentions)) for doc_mentions in mentions]


def _salient_phrases(docs: Sequence[Doc], titles: Sequence[str]) -> frozenset[str]:
    """Return common phrases of several words recurring in the chunk, or equal to title or
    heading."""
    counts = Counter(text for doc in docs for text in _common_phrases(doc))
    lower_titles = {title.lower() for title in titles}
    return frozenset(text for text, count in counts.items() if count > 1 or text in lower_titles)


def _common_phrases(doc: Doc) -> Iterator[str]:
    for before, token in pairwise(doc):
        if token.tag_ in ("NN", "NNS") and before.dep_ in ("compound", "amod"):
            start, end = phrase_bounds(token, whole=False)
            if end - start > 1:
                yield doc[start:end].text.lower()
