"""A question in steps: what it describes instead of naming is asked first.

"When was the director of the film that won the Palme d'Or born?" asks for a film, then for its
director, then for a birth. The parse of the question finds the phrases that describe something: a
noun with a relative clause, with "of" and a name, or after a possessive. Each is a question of its
own, the innermost first, and stands for its answer in the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tgraph.retrieve.text.answer_type import kind_of_phrase
from tgraph.retrieve.text.question_analysis import descriptions, telling_words

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

MOST = 4
"""Steps of a question, the last included."""

LONGEST = 100
"""Words of a question that is parsed."""

_PLACEHOLDER = re.compile(r"#(\d)\b")
_CLAUSES = frozenset({"relcl", "acl"})
_OF = frozenset({"of"})
_INDEFINITE = frozenset({"a", "an", "any", "some", "many", "much", "no"})
_GLANCE = re.compile(
    r"\w['’]s? \w|\bthe [\w -]{2,60}? (?:of|that|which|who|whom|whose|where|when|in which) \w"
    r"|\b(?:that|which|whom?|whose|where)\b(?<!^\w{3})(?<!^\w{4})(?<!^\w{5})",
    re.IGNORECASE,
)
"""What a question has that describes something: a possessive, "the ... of", or a clause."""
_COMMON = frozenset({"NN", "NNS"})
_NAMES = frozenset({"NNP", "NNPS"})
_ARTICLES = re.compile(r"^(?:the|an?|that|those|this)\s+", re.IGNORECASE)
_QUESTION = re.compile(r"\b(?:who|whom|whose|what|which|when|where|why|how)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QuestionStep:
    """A question with ``#1`` for the answer of the first step, and so on.

    ``noun`` is the kind of thing that answers it, where the question says so; ``phrase`` what it
    describes, empty for the last.
    """

    text: str
    noun: str = ""
    phrase: str = ""

    @property
    def needs(self) -> tuple[int, ...]:
        """The steps whose answers it needs, counted from 1."""
        return tuple(sorted({int(n) for n in _PLACEHOLDER.findall(self.text)}))

    def asked(self, answers: Mapping[int, str]) -> str:
        """The question with the answers in the places that are kept for them."""
        return _filled(self.text, answers)

    def described(self, answers: Mapping[int, str]) -> str:
        """What it describes, with the answers as in ``asked``."""
        return _filled(self.phrase, answers)


def without_article(phrase: str) -> str:
    return _ARTICLES.sub("", phrase)


def _filled(text: str, answers: Mapping[int, str]) -> str:
    return _PLACEHOLDER.sub(lambda m: answers.get(int(m.group(1)), m.group()), text)


@lru_cache(maxsize=256)
def decomposed(question: str) -> tuple[QuestionStep, ...]:
    """The steps of a question, the last one being what is asked in the end; none where it takes
    no step before that. A question that can't take any, at a glance, is not parsed."""
    if not _GLANCE.search(question) or len(question.split()) > LONGEST or "#" in question:
        return ()
    from tgraph.extract.english.parser import analyse

    doc = analyse([question])[0]
    spans = _outermost_last(_described(doc))[: MOST - 1]
    while spans and not _asks(_with_places(doc, doc[:], spans)):
        spans.pop()
    if not spans:
        return _by_words(question)
    steps = []
    for place, span in enumerate(spans):
        noun = span.root.text
        phrase = _with_places(doc, span, spans[:place])
        steps.append(QuestionStep(_question(phrase, noun), noun, phrase))
    return _if_linked((*steps, QuestionStep(_with_places(doc, doc[:], spans))))


def _if_linked(steps: tuple[QuestionStep, ...]) -> tuple[QuestionStep, ...]:
    """The steps, if each but the last has an answer that a later one needs."""
    needed = {number for step in steps for number in step.needs}
    return steps if needed == set(range(1, len(steps))) else ()


def _by_words(question: str) -> tuple[QuestionStep, ...]:
    """One step by the words alone, where the parse shows none."""
    found = next((d for d in descriptions(question) if d.noun), None)
    if found is None:
        return ()
    first = QuestionStep(_question(found.text, found.noun), found.noun, found.text)
    return _if_linked((first, QuestionStep(found.about("#1"))))


def _described(doc: Doc) -> Iterator[Span]:
    """The phrases that describe something instead of naming it."""
    for token in doc:
        if token.tag_ not in _COMMON or not _is_definite(token):
            continue
        end = max((_end(child) for child in _restrictions(token)), default=-1)
        possessor = next((child for child in token.lefts if child.dep_ == "poss"), None)
        if possessor is not None and _is_told(possessor):
            yield doc[possessor.left_edge.i : max(token.i, end) + 1]
        elif end > token.i:
            yield doc[token.left_edge.i : end + 1]


def _end(child: Token) -> int:
    """The last token of what restricts a noun; a bare participle at the end of a question belongs
    to what is asked ("When was the director of the film born?")."""
    last = child.right_edge
    ends = all(token.is_punct for token in child.doc[last.i + 1 :])
    asked = ends and last.tag_ == "VBN" and last.dep_ == "acl" and not list(last.children)
    return last.i - 1 if asked else last.i


def _restrictions(noun: Token) -> Iterator[Token]:
    """What says which one is meant: a clause, or "of" with a name or a description."""
    return (child for child in noun.rights if _says_which(child))


def _says_which(child: Token) -> bool:
    if child.dep_ in _CLAUSES:
        told = telling_words(child.doc[child.left_edge.i : child.right_edge.i + 1].text)
        return len(told) > 1 and not _asks_within(child)
    return (
        child.dep_ == "prep"
        and child.lower_ in _OF
        and any(_is_told(thing) for thing in child.children if thing.dep_ == "pobj")
    )


def _asks_within(clause: Token) -> bool:
    """Whether the clause asks ("a war that Italy entered when?") rather than describes."""
    last = clause.doc[clause.right_edge.i]
    return any(_QUESTION.fullmatch(t.text) for t in (last, clause.doc[max(0, last.i - 1)]))


def _is_told(token: Token) -> bool:
    """Whether it says what is meant: by a name in it, or as a description itself."""
    named = any(t.tag_ in _NAMES or t.text[:1].isupper() for t in token.subtree)
    return named or any(_restrictions(token))


def _is_definite(noun: Token) -> bool:
    """Whether one thing is meant: not any ("a film that ..."), nor the one that the question word
    asks for ("which film that ...")."""
    return not any(
        child.lower_ in _INDEFINITE or _QUESTION.fullmatch(child.text) for child in noun.lefts
    )


def _outermost_last(spans: Iterator[Span]) -> list[Span]:
    """The spans from the inside out; of those that cross, the shorter."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (len(s), s.start)):
        apart = (s.end <= span.start or s.start >= span.end for s in kept)
        within = (span.start <= s.start and s.end <= span.end for s in kept)
        if all(a or w for a, w in zip(apart, within, strict=True)):
            kept.append(span)
    return kept


def _with_places(doc: Doc, span: Span, inner: Sequence[Span]) -> str:
    """The text of a span with ``#n`` for the outermost of the numbered spans in it."""
    inside = [(s.start, s.end, n) for n, s in enumerate(inner, 1) if _contains(span, s)]
    outer = [
        one
        for one in inside
        if not any(o is not one and o[0] <= one[0] and one[1] <= o[1] for o in inside)
    ]
    parts = []
    at = span.start
    for start, end, number in sorted(outer):
        tail = doc[end - 1].whitespace_
        parts += [doc[at:start].text_with_ws, f"#{number}{tail}"]
        at = end
    return " ".join("".join([*parts, doc[at : span.end].text]).split())


def _contains(span: Span, other: Span) -> bool:
    return span.start <= other.start and other.end <= span.end and span != other


def _question(description: str, noun: str) -> str:
    """A description as a question."""
    bare = description.rstrip(" ?.!,")
    word = "Who" if kind_of_phrase(noun) == "person" else "What"
    named = "#" in bare[:1] or "'s " in bare or "’s " in bare
    article = "" if named or _ARTICLES.match(bare) else "the "
    return f"{word} is {article}{bare}?"


def _asks(question: str) -> bool:
    """Whether something is left to ask beside the answers of the steps before."""
    return bool(telling_words(_PLACEHOLDER.sub(" ", question)) and _QUESTION.search(question))
