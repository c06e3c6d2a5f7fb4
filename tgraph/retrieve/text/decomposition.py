"""Question decomposition: descriptions inside a question become earlier steps.

"When was the director of the film that won the Palme d'Or born?" asks for a film, then for the
film's director, then for a birth date. The parse finds describing phrases: a noun with a
relative clause, with "of" and a name, or after a possessive. Each phrase becomes a separate
question, innermost first, and its answer replaces the phrase in the next question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tgraph.retrieve.text.answer_type import kind_of_phrase
from tgraph.retrieve.text.question_analysis import find_descriptions, telling_words

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
    """A question step with placeholders: ``#1`` stands for step 1's answer.

    ``noun`` is the kind of thing expected as answer, if stated; ``phrase`` is the described
    phrase, empty for the last step."""

    text: str
    noun: str = ""
    phrase: str = ""

    @property
    def needs(self) -> tuple[int, ...]:
        """Numbers of steps whose answers this step needs, counted from 1."""
        return tuple(sorted({int(n) for n in _PLACEHOLDER.findall(self.text)}))

    def fill_question(self, answers: Mapping[int, str]) -> str:
        """Return the question text with answers in place of placeholders."""
        return _fill_answers(self.text, answers)

    def fill_description(self, answers: Mapping[int, str]) -> str:
        """Return the described phrase, with answers filled in like ``asked``."""
        return _fill_answers(self.phrase, answers)


def without_article(phrase: str) -> str:
    return _ARTICLES.sub("", phrase)


def _fill_answers(text: str, answers: Mapping[int, str]) -> str:
    return _PLACEHOLDER.sub(lambda m: answers.get(int(m.group(1)), m.group()), text)


@lru_cache(maxsize=256)
def decompose_question(question: str) -> tuple[QuestionStep, ...]:
    """Decompose a question into steps; the last step asks the final question.

    Return an empty tuple if no earlier step is needed. Questions showing no description at a
    glance are not parsed."""
    if not _GLANCE.search(question) or len(question.split()) > LONGEST or "#" in question:
        return ()
    from tgraph.extract.english.parser import analyse_texts

    doc = analyse_texts([question])[0]
    spans = _outermost_last(_find_describing_spans(doc))[: MOST - 1]
    while spans and not _has_open_question(_with_places(doc, doc[:], spans)):
        spans.pop()
    if not spans:
        return _by_words(question)
    steps = []
    for place, span in enumerate(spans):
        noun = span.root.text
        phrase = _with_places(doc, span, spans[:place])
        steps.append(QuestionStep(_form_question(phrase, noun), noun, phrase))
    return _if_linked((*steps, QuestionStep(_with_places(doc, doc[:], spans))))


def _if_linked(steps: tuple[QuestionStep, ...]) -> tuple[QuestionStep, ...]:
    """Return the steps if later steps use every earlier answer, otherwise an empty tuple."""
    needed = {number for step in steps for number in step.needs}
    return steps if needed == set(range(1, len(steps))) else ()


def _by_words(question: str) -> tuple[QuestionStep, ...]:
    """Build two steps from question words alone, as a fallback if parsing finds no description."""
    description = next((d for d in find_descriptions(question) if d.noun), None)
    if description is None:
        return ()
    first = QuestionStep(
        _form_question(description.text, description.noun), description.noun, description.text
    )
    return _if_linked((first, QuestionStep(description.replace_description("#1"))))


def _find_describing_spans(doc: Doc) -> Iterator[Span]:
    """Yield spans describing something instead of naming it."""
    for token in doc:
        if token.tag_ not in _COMMON or not _is_definite(token):
            continue
        end = max((_restriction_end(child) for child in _find_restrictions(token)), default=-1)
        possessor = next((child for child in token.lefts if child.dep_ == "poss"), None)
        if possessor is not None and _is_told(possessor):
            yield doc[possessor.left_edge.i : max(token.i, end) + 1]
        elif end > token.i:
            yield doc[token.left_edge.i : end + 1]


def _restriction_end(child: Token) -> int:
    """Return the last token index of a noun's restriction.

    A bare participle ending a question belongs to the question itself, not to the restriction
    ("When was the director of the film born?")."""
    last = child.right_edge
    ends = all(token.is_punct for token in child.doc[last.i + 1 :])
    ends_question = ends and last.tag_ == "VBN" and last.dep_ == "acl" and not list(last.children)
    return last.i - 1 if ends_question else last.i


def _find_restrictions(noun: Token) -> Iterator[Token]:
    """Yield a noun's identifying restrictions: clauses, or "of" phrases containing a name or
    description."""
    return (child for child in noun.rights if _says_which(child))


def _says_which(child: Token) -> bool:
    if child.dep_ in _CLAUSES:
        content_words = telling_words(child.doc[child.left_edge.i : child.right_edge.i + 1].text)
        return len(content_words) > 1 and not _asks_within(child)
    return (
        child.dep_ == "prep"
        and child.lower_ in _OF
        and any(
            _is_told(object_token) for object_token in child.children if object_token.dep_ == "pobj"
        )
    )


def _asks_within(clause: Token) -> bool:
    """Check whether a clause asks ("a war that Italy entered when?") rather than describes."""
    last = clause.doc[clause.right_edge.i]
    return any(_QUESTION.fullmatch(t.text) for t in (last, clause.doc[max(0, last.i - 1)]))


def _is_told(token: Token) -> bool:
    """Check whether a phrase identifies its referent: by name or by restriction."""
    has_name = any(t.tag_ in _NAMES or t.text[:1].isupper() for t in token.subtree)
    return has_name or any(_find_restrictions(token))


def _is_definite(noun: Token) -> bool:
    """Check whether a noun means one particular thing.

    Indefinite nouns ("a film that ...") and nouns after a question word ("which film that ...")
    are excluded."""
    return not any(
        child.lower_ in _INDEFINITE or _QUESTION.fullmatch(child.text) for child in noun.lefts
    )


def _outermost_last(spans: Iterator[Span]) -> list[Span]:
    """Sort spans from innermost to outermost; of crossing spans, keep the shorter."""
    uncrossed_spans: list[Span] = []
    for span in sorted(spans, key=lambda s: (len(s), s.start)):
        apart = (s.end <= span.start or s.start >= span.end for s in uncrossed_spans)
        containments = (span.start <= s.start and s.end <= span.end for s in uncrossed_spans)
        if all(a or w for a, w in zip(apart, containments, strict=True)):
            uncrossed_spans.append(span)
    return uncrossed_spans


def _with_places(doc: Doc, span: Span, inner: Sequence[Span]) -> str:
    """Return a span's text with ``#n`` replacing each outermost numbered span inside."""
    inside = [(s.start, s.end, n) for n, s in enumerate(inner, 1) if _contains_span(span, s)]
    outer = [
        inner_span
        for inner_span in inside
        if not any(
            o is not inner_span and o[0] <= inner_span[0] and inner_span[1] <= o[1] for o in inside
        )
    ]
    parts = []
    at = span.start
    for start, end, number in sorted(outer):
        tail = doc[end - 1].whitespace_
        parts += [doc[at:start].text_with_ws, f"#{number}{tail}"]
        at = end
    return " ".join("".join([*parts, doc[at : span.end].text]).split())


def _contains_span(span: Span, other: Span) -> bool:
    return span.start <= other.start and other.end <= span.end and span != other


def _form_question(description: str, noun: str) -> str:
    """Turn a description into a question."""
    bare = description.rstrip(" ?.!,")
    word = "Who" if kind_of_phrase(noun) == "person" else "What"
    needs_no_article = "#" in bare[:1] or "'s " in bare or "’s " in bare
    article = "" if needs_no_article or _ARTICLES.match(bare) else "the "
    return f"{word} is {article}{bare}?"


def _has_open_question(question: str) -> bool:
    """Check whether a question still asks something beyond answers of earlier steps."""
    return bool(telling_words(_PLACEHOLDER.sub(" ", question)) and _QUESTION.search(question))
