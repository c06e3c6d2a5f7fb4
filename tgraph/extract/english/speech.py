"""Speech attribution: quotations with speakers and listeners, determined from surrounding
words.

A quotation's speaker is identified by a speech verb beside it (Elson and McKeown 2010): right
after it ("...," said Bob), right before it (Bob said: "..."), or by continuing an utterance
from a few words earlier. Without such a verb, the speaker is whoever acted just before in the
same paragraph, or in a dialogue of two taking turns, whoever's turn it is. Otherwise nobody is
named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tgraph.extract.english.clauses import subjects_of
from tgraph.extract.english.mentions import Mention
from tgraph.extract.english.parser import is_noun, is_speech_verb, text_of, verb_lemma
from tgraph.extract.facts import NamedEntity

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_SPOKEN_TO = frozenset({"tell", "ask", "answer", "beg", "warn", "beseech", "entreat", "implore"})
_DOUBLE = {'"': '"', "“": "”", "«": "»"}
_SINGLE = {"'": "'", "‘": "’"}
_ENDS = frozenset(".,!?;:-–—…")
_QUOTES = frozenset("\"'“”‘’«»")
_LEADS_IN = frozenset({",", ":", "-", "--", "–", "—"})
_REACH = 10
_CALLS = frozenset({"o", "oh", "ah", "dear", "my", "and", "yes", "no", "well", "come", "but"})


def find_quotations(text: str) -> list[tuple[int, int]]:
    """Return spans of quotations including quotation marks, in order, without overlap.

    Unclosed marks enclose the rest of the text, if they open the text or are double. Linear in
    time."""
    marks = _DOUBLE if any(mark in text for mark in _DOUBLE) else _SINGLE
    spans = []
    start, closing = -1, ""
    for place, mark in enumerate(text):
        if start < 0:
            if mark in marks and _opens_quotation(text, place):
                start, closing = place, marks[mark]
        elif mark == closing and _closes_quotation(text, place):
            spans.append((start, place + 1))
            start = -1
    if start >= 0 and (start == 0 or marks is _DOUBLE):
        spans.append((start, len(text)))
    return spans


def _opens_quotation(text: str, place: int) -> bool:
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    return not (before.isalnum() or before in (".", ",") or after.isspace() or not after)


def _closes_quotation(text: str, place: int) -> bool:
    if text[place] in ('"', "”", "»"):
        return True
    return text[place - 1] in _ENDS and not text[place + 1 : place + 2].isalnum()


def _is_speech(text: str, start: int, end: int) -> bool:
    """Tell whether a quotation reads like speech, not like a title or quoted word."""
    inside = text[start + 1 : end - 1]
    ends = inside[-1:] in _ENDS or end == len(text) or text[end - 1] not in _QUOTES
    return ends and any(map(str.isalpha, inside))


@dataclass(slots=True)
class Utterance:
    """A quotation's utterance: characters, plus tokens identifying speaker and listener.

    ``beat`` is the subject of the narration right before it. ``goes_on`` marks continuation by
    the previous quotation's speaker, ``follows`` marks that nothing is narrated between the
    two. ``verb`` is the speech verb. Tokens ``first`` to ``stop`` belong to the quotation,
    ``last`` is the last token used for attribution."""

    start: int
    end: int
    first: int
    stop: int
    last: int
    speaker: Token | None = None
    listener: Token | None = None
    verb: Token | None = None
    beat: Token | None = None
    goes_on: bool = False
    follows: bool = False
    calls: Mention | None = None
    by: NamedEntity | None = None
    to: NamedEntity | None = None
    sure: bool = False


def find_utterances(doc: Doc, mentions: Sequence[Mention]) -> list[Utterance]:
    """Return utterances of a parsed paragraph in order, with speaker clues."""
    text = text_of(doc)
    if not any(mark in text for mark in _QUOTES):
        return []
    places = [place for place in find_quotations(text) if _is_speech(text, *place)]
    utterances = [u for place in places if (u := _create_utterance(doc, *place)) is not None]
    for index, utterance in enumerate(utterances):
        before = utterances[index - 1] if index else None
        after = utterances[index + 1] if index + 1 < len(utterances) else None
        _attribute_speech(doc, utterance, before, after)
        utterance.calls = _find_addressee(doc, utterance, mentions)
    return [utterance for utterance in utterances if _reads_as_said(doc, utterance)]


def _reads_as_said(doc: Doc, utterance: Utterance) -> bool:
    if utterance.speaker is not None or utterance.goes_on or doc[utterance.first].is_sent_start:
        return True
    return doc[utterance.first - 1].text in _LEADS_IN


def _create_utterance(doc: Doc, start: int, end: int) -> Utterance | None:
    span = doc.char_span(start, end, alignment_mode="expand")
    if span is None:
        return None
    return Utterance(start, end, span.start, span.end - 1, span.end - 1)


def _attribute_speech(
    doc: Doc, utterance: Utterance, before: Utterance | None, after: Utterance | None
) -> None:
    limit = after.first if after is not None else len(doc)
    told_between = doc[before.last + 1 : utterance.first] if before else doc[: utterance.first]
    utterance.follows = not any(token.is_alpha for token in told_between)
    start = before.last + 1 if before is not None else 0
    attribution = _speaker_after(doc, utterance.stop + 1, limit)
    if attribution is not None:
        utterance.last = max(attribution[0].i, attribution[1].i)
    else:
        attribution = _speaker_before(
            doc, max(start, doc[utterance.first].sent.start), utterance.first
        )
    if attribution is not None:
        utterance.speaker, utterance.verb = attribution
        utterance.listener = _find_listener(utterance.verb, utterance.speaker)
    elif before is not None and _goes_on(doc, before, utterance):
        utterance.goes_on = True
    else:
        utterance.beat = _acting_subject(doc, start, utterance.first)


def _goes_on(doc: Doc, before: Utterance, utterance: Utterance) -> bool:
    """Tell whether only the speaker attribution stands between two quotations: "...," said Bob.
    "..."."""
    tokens_between = doc[before.last + 1 : utterance.first]
    return before.last > before.stop and not any(token.is_sent_start for token in tokens_between)


def _speaker_after(doc: Doc, start: int, limit: int) -> tuple[Token, Token] | None:
    """Return speaker and verb right after a quotation: "said Bob", "he said"."""
    if start >= limit:
        return None
    tokens = doc[start : min(limit, start + _REACH)]
    new_sentence = tokens[0].is_sent_start
    for token in tokens:
        if token.i > start and token.is_sent_start:
            return None
        if token.text in _ENDS and token.text not in (",", "-", "–", "—"):
            return None
        if is_speech_verb(token):
            if new_sentence and any(c.dep_ in ("dobj", "xcomp") for c in token.children):
                return None
            speaker = _subject_before(token, start) or _subject_behind(token, limit)
            return (speaker, token) if speaker is not None else None
    return None


def _speaker_before(doc: Doc, start: int, limit: int) -> tuple[Token, Token] | None:
    """Return speaker and verb right before a quotation: "Bob said to him:"."""
    if start >= limit or doc[limit - 1].text not in (",", ":", "-", "–", "—"):
        return None
    for token in reversed(doc[start:limit]):
        if is_speech_verb(token):
            subjects = [t for t in subjects_of(token) if start <= t.i < limit]
            return (subjects[0], token) if subjects else None
    return None


def _subject_before(verb: Token, start: int) -> Token | None:
    subjects = [child for child in verb.children if child.dep_ in ("nsubj", "nsubjpass")]
    between = [child for child in subjects if start <= child.i < verb.i]
    if between:
        return between[-1]
    inside = verb.doc[start : verb.i]
    nominals = [t for t in inside if t.tag_ == "PRP" or is_noun(t)]
    return nominals[-1] if nominals and nominals[-1].i == verb.i - 1 else None


def _subject_behind(verb: Token, limit: int) -> Token | None:
    """The noun that follows the verb: "said the old man"."""
    place = verb.i + 1
    while place < min(limit, verb.i + _REACH):
        token = verb.doc[place]
        last = place + 1 >= len(verb.doc)
        if token.tag_ == "PRP":
            return token
        if is_noun(token):
            following = None if last else verb.doc[place + 1]
            goes_on = following is not None and (is_noun(following) or following.tag_ == "POS")
            if following is None or not goes_on or following.is_sent_start:
                return token
        elif not (token.tag_.startswith(("DT", "JJ", "PRP$", "POS", "VBG")) or token.text == "-"):
            return None
        place += 1
    return None


def _find_listener(verb: Token, speaker: Token) -> Token | None:
    for child in verb.children:
        if child.dep_ in ("prep", "dative") and child.lower_ in ("to", "of"):
            listener = next((c for c in child.children if c.dep_ == "pobj"), None)
            if listener is not None:
                return listener
        direct = child.dep_ == "dative" or (child.dep_ == "dobj" and verb_lemma(verb) in _SPOKEN_TO)
        if (
            direct
            and child.i not in (speaker.i, verb.i)
            and (is_noun(child) or child.tag_ == "PRP")
        ):
            return child
    return None


def _acting_subject(doc: Doc, start: int, limit: int) -> Token | None:
    """Return the final narrated sentence's subject before a quotation."""
    if start >= limit:
        return None
    last = doc[limit - 1].sent
    for token in reversed(doc[max(start, last.start) : limit]):
        if token.dep_ == "nsubj" and token.head.dep_ in ("ROOT", "conj", "ccomp"):
            main_verb = token.head if token.head.dep_ != "conj" else token.head.head
            first = [c for c in main_verb.children if c.dep_ == "nsubj" and start <= c.i < limit]
            return first[0] if first else token
    return None


def _find_addressee(doc: Doc, utterance: Utterance, mentions: Sequence[Mention]) -> Mention | None:
    """Return the mention addressing the listener by name: "Come here, Bob!"."""
    for mention in mentions:
        if not mention.is_name or mention.type != "person":
            continue
        first, end = mention.start, mention.end
        if not utterance.start < doc[first].idx < utterance.end or end >= len(doc):
            continue
        before, behind = doc[first - 1], doc[end]
        if behind.text not in (",", "!", "?", ".", ";") and behind.text[0] not in _QUOTES:
            continue
        opens = before.text[0] in _QUOTES or before.text in (".", "!", "?")
        called = before.text == "," or before.lower_ in _CALLS
        if called and _ends_clause(doc, end):
            return mention
        if opens and behind.text in (",", "!"):
            return mention
    return None


def _ends_clause(doc: Doc, end: int) -> bool:
    return doc[end].text in ("!", "?", ".", ";") or doc[end].text[0] in _QUOTES


class Dialogue:
    """Turn order of speakers, across a chunk's paragraphs."""

    def __init__(self) -> None:
        self._turns: list[NamedEntity | None] = []
        self._listener: NamedEntity | None = None

    @property
    def latest_speakers(self) -> tuple[NamedEntity | None, NamedEntity | None]:
        """Latest speaker and listener."""
        return (self._turns[-1] if self._turns else None), self._listener

    @property
    def addressee(self) -> NamedEntity | None:
        """Addressee of the latest speaker's answer, if known."""
        return self._turns[0] if len(self._turns) > 1 else None

    def narration(self) -> None:
        """Record narration between utterances: turn order becomes uncertain."""
        self._turns.clear()
        self._listener = None

    def next_turn(self, told: NamedEntity | None, is_unknown: bool) -> NamedEntity | None:
        """Return the next speaker: the attributed speaker, otherwise the speaker due by turn
        order, unless unknown."""
        speaker = told if told is not None or is_unknown else self._other_speaker()
        self._turns = [*self._turns[-1:], speaker]
        return speaker

    def listens(self, listener: NamedEntity | None) -> None:
        self._listener = listener

    def _other_speaker(self) -> NamedEntity | None:
        """Return the alternating speaker other than the latest."""
        if self._listener is not None:
            return self._listener
        earlier, latest = self._turns if len(self._turns) == 2 else (None, None)
        return earlier if latest is not None and earlier is not latest else None


def spoken_spans(doc: Doc, utterance: Utterance, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield an utterance's character span within a sentence, without quotation marks."""
    text = text_of(doc)
    first, last = max(start, utterance.start), min(end, utterance.end)
    while first < last and (text[first] in _QUOTES or text[first].isspace()):
        first += 1
    while last > first and (text[last - 1] in _QUOTES or text[last - 1] in ", \n"):
        last -= 1
    if any(map(str.isalnum, text[first:last])):
        yield first, last


def is_asked(text: str, place: int, end: int) -> bool:
    """Tell whether the spoken sentence at a position ends as question."""
    for mark in text[place:end]:
        if mark in ".!?":
            return mark == "?"
    return False
