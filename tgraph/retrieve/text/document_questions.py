"""Questions that ask each document: "What does each document say about the tide?".

Determiners and verbs of saying around a word for documents decide; the rest is the subject."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tgraph.resources import word_set
from tgraph.retrieve.text.question_analysis import telling_words


def _any_of(alternatives: Iterable[str]) -> str:
    return rf"(?:{'|'.join(sorted(alternatives, key=lambda word: (-len(word), word)))})"


_DOCUMENTS = _any_of(word_set("questions", "documents") | {"page"})
_EACH = _any_of(word_set("questions", "distributing"))
_SAY = _any_of(word_set("questions", "saying"))
_TELL_OF = _any_of(word_set("questions", "telling_of"))
_ON = r"(?:about|on|of|regarding|concerning|as to|with regard to|in regard to|to do with)"
_THE = r"(?:the|these|those|your|my|our)"
_SINGLY = (
    rf"(?:{_EACH}(?: one)?(?: of)?(?: {_THE})? {_DOCUMENTS}"
    rf"|{_THE} {_EACH} {_DOCUMENTS}|{_THE} {_DOCUMENTS} (?:each|all))"
)
_SAYING = rf"(?:(?:have|has) to )?{_SAY}(?: us| me)?(?: anything| something)?"
_TELLING = (
    rf"(?:{_TELL_OF}|(?:{_SAY}|talk|speak|refer|deal)(?: anything| something)?"
    rf" (?:{_ON}|to|with)|are about)"
)
_SUBJECT = r"(?P<subject>.+)"

_FORMS = tuple(
    re.compile(rf"^\W*{form}$", re.IGNORECASE)
    for form in (
        rf"(?:what|how) (?:do|does|did) {_SINGLY} {_SAYING} {_ON} {_SUBJECT}",
        rf"(?:\w+ ){{0,4}}what {_SINGLY} {_SAYING} {_ON} {_SUBJECT}",
        rf"(?:what|which) (?:of {_THE} |\w+ )?{_DOCUMENTS} {_TELLING} {_SUBJECT}",
        rf"(?:\w+ ){{1,3}}(?:all|each|every|the)(?: of the| the)? {_DOCUMENTS} (?:that|which)"
        rf" {_TELLING} {_SUBJECT}",
        rf"(?:for|in|from|by) {_SINGLY},? what (?:does it say|is said|do they say)"
        rf" {_ON} {_SUBJECT}",
        rf"what is said (?:in|by) {_SINGLY} {_ON} {_SUBJECT}",
        rf"what is said {_ON} {_SUBJECT} (?:in|by) {_SINGLY}",
    )
)
_PLEASE = re.compile(r"^please,? |,? please$", re.IGNORECASE)
_ASKS = re.compile(r"(?:who|whom|whose|what|which|when|where|why|how)\b", re.IGNORECASE)
_EACH_OF_THEM = r"(?: (?:do|does) (?:they|it|each(?: of them)?))? (?:all |each )?"
_WHAT_THEY_SAY = re.compile(
    rf",? and (?:what|how){_EACH_OF_THEM}{_SAYING}(?: {_ON} (?:it|him|her|them|this|that))?\W*$",
    re.IGNORECASE,
)


def subject_for_documents(question: str) -> str:
    """Return the subject on which a question asks each document; empty for other questions."""
    text = _WHAT_THEY_SAY.sub("", " ".join(question.split()).rstrip(" ?.!"))
    text = _PLEASE.sub("", text)
    for form in _FORMS:
        match = form.match(text)
        if match and telling_words(match["subject"]) and not _ASKS.match(match["subject"]):
            return match["subject"].strip(" ,;:")
    return ""
