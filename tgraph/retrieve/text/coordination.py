"""A question that asks several things at once: its parts, each as a question of its own.

"When was the Fram built and who leads it?" has two clauses that ask, "When and where was it
built?" two question words, "When was it built and lost?" two predicates. What a part has only in
the question as a whole is put into it: a pronoun stands for what the first part is about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from tgraph.retrieve.text.answer_type import TIMES
from tgraph.retrieve.text.decomposition import LONGEST, MOST, QuestionStep
from tgraph.retrieve.text.question_analysis import telling_words

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

_QUESTION_WORDS = frozenset(
    {"who", "whom", "whose", "what", "which", "when", "where", "why", "how"}
)
_ADVERBS = frozenset({"when", "where", "why", "how"})
_GLANCE = re.compile(r"^\W*\w.*\band (?!the\b|an?\b)[a-z]", re.DOTALL)
"""What a question has that asks several things: an "and" before what is no name."""
_RELATIVE = frozenset({"relcl", "acl"})
_COMMON = frozenset({"NN", "NNS"})
_SUBJECTS = frozenset({"nsubj", "nsubjpass"})
_NAMES = frozenset({"NNP", "NNPS"})
_ROLES = (_SUBJECTS, frozenset({"dobj", "pobj", "attr"}))
_POSSESSIVES = frozenset({"its", "his", "her", "their"})
_OWNS = "'s"
_PRONOUN = re.compile(r"\b(?:it|he|she|they|him|them|its|his|her|their)\b", re.IGNORECASE)


@lru_cache(maxsize=256)
def coordinated(question: str) -> tuple[QuestionStep, ...]:
    """The parts of a question, each with its words in ``phrase``; none where it asks one thing. A
    question that can't ask several, at a glance, is not parsed."""
    text = " ".join(question.split())
    if not _GLANCE.search(text) or len(text.split()) > LONGEST:
        return ()
    from tgraph.extract.english.parser import analyse

    doc = analyse([text])[0]
    for split in (_clauses, _question_words, _predicates, _nouns):
        if len(parts := split(doc)) > 1:
            return parts[:MOST]
    return ()


def _part(text: str, words: str = "") -> QuestionStep:
    """A part: the question, and the words that are told of it."""
    bare = text.strip(" ?.,;")
    told = (words or bare).strip(" ?.,;")
    return QuestionStep(f"{bare[:1].upper()}{bare[1:]}?", phrase=f"{told[:1].lower()}{told[1:]}")


# --- clauses ---


def _clauses(doc: Doc) -> tuple[QuestionStep, ...]:
    """The clauses after "and" that begin with a question word, and what stands before them."""
    asking = [t for t in doc if t.lower_ in _QUESTION_WORDS and not _describes(t)]
    starts = [start for t in asking if (start := _clause_start(t))]
    if not starts or asking[0].i >= starts[0]:
        return ()
    ends = [*(start - 1 for start in starts[1:]), len(doc)]
    first = doc[: starts[0] - 1]
    if not telling_words(first.text):
        return ()
    others = (doc[start:end].text for start, end in zip(starts, ends, strict=True))
    return (_part(first.text), *(_part(_named(text, first), text) for text in others))


def _clause_start(token: Token) -> int:
    """Where the clause of a question word begins, right after an "and"; 0 where it doesn't, or no
    verb follows."""
    start = token.i - (token.nbor(-1).tag_ == "IN" if token.i else 0)
    verbs = (t for t in token.doc[token.i + 1 :] if t.tag_.startswith(("VB", "MD")))
    return start if start > 1 and token.doc[start - 1].lower_ == "and" and any(verbs) else 0


def _describes(token: Token) -> bool:
    """Whether its clause describes something ("the man who built it and who sailed it")."""
    return any(each.dep_ in _RELATIVE for each in (token, *token.ancestors))


def _named(text: str, before: Span) -> str:
    """The text with what the clause before is about in the place of the first pronoun."""
    found = _PRONOUN.search(text)
    about = _about(before, found.group().lower()) if found else ""
    if found is None or not about:
        return text
    owner = found.group().lower() in _POSSESSIVES and text[found.end() :].strip(" ?.")
    return f"{text[: found.start()]}{about}{_OWNS if owner else ''}{text[found.end() :]}"


def _about(clause: Span, pronoun: str) -> str:
    """What a pronoun means of a clause: several by their common noun, one by a name first."""
    names = [t for t in clause if t.tag_ in _NAMES and t.dep_ != "compound"][::-1]
    common = [t for roles in _ROLES for t in clause if t.dep_ in roles and t.tag_ in _COMMON]
    common = [t for t in common if t.lower_ not in TIMES]
    if pronoun in ("they", "them", "their"):
        heads = [*common, *names]
    elif pronoun in ("it", "its"):
        things = [t for t in names if t.ent_type_ != "PERSON"]
        heads = [*things, *common, *names]
    else:
        heads = [*names, *common]
    return _phrase(heads[0], clause) if heads else ""


def _phrase(head: Token, clause: Span) -> str:
    """The noun phrase; what a question word asks for is "the" one."""
    from tgraph.extract.english.parser import phrase_bounds

    start, end = phrase_bounds(head)
    start = min(start, head.left_edge.i)
    if clause.doc[start].lower_ in _QUESTION_WORDS:
        return f"the {clause.doc[start + 1 : end].text}"
    return str(clause.doc[start : min(end, clause.end)].text)


# --- what is coordinated within one clause ---


def _question_words(doc: Doc) -> tuple[QuestionStep, ...]:
    """Two question words of one clause: "when and where"."""
    if len(doc) < 4 or doc[1].lower_ != "and" or doc[2].lower_ not in _QUESTION_WORDS:
        return ()
    if doc[0].lower_ not in _QUESTION_WORDS:
        return ()
    rest = doc[3:].text
    return tuple(_part(f"{word} {rest}") for word in (doc[0].text, doc[2].text))


def _predicates(doc: Doc) -> tuple[QuestionStep, ...]:
    """Two predicates of a clause that asks when, where, why or how; of "who" and "what" both say
    the same of one answer."""
    if len(doc) < 2 or doc[0].lower_ not in _ADVERBS or not doc[1].tag_.startswith(("VB", "MD")):
        return ()
    return _each(doc, lambda token: token.dep_ == "ROOT" and token.tag_.startswith("VB"), True)


def _nouns(doc: Doc) -> tuple[QuestionStep, ...]:
    """Two things that are asked for of one: "What are the height and weight of the tower?"."""
    if len(doc) < 3 or doc[0].lower_ != "what" or doc[1].lower_ not in ("is", "are", "was", "were"):
        return ()
    return _each(doc, lambda t: t.tag_ in _COMMON and t.dep_ in ("nsubj", "attr"), False)


def _each(doc: Doc, is_first: Callable[[Token], bool], whole: bool) -> tuple[QuestionStep, ...]:
    """The clause with each of its coordinated heads alone; ``whole`` with what follows them."""
    first = next((t for t in doc if is_first(t) and _conjuncts(t)), None)
    if first is None:
        return ()
    heads = [first, *_conjuncts(first)]
    if any(_own_subject(head) for head in heads[1:]):
        return ()
    before = (first, *heads)
    spans = [(_start(h, b), _end(h, whole)) for h, b in zip(heads, before, strict=False)]
    parts = []
    for at in range(len(heads)):
        left_out = {i for j, span in enumerate(spans) if j != at for i in range(*span)}
        cut = {t.i for t in doc if t.dep_ in ("cc", "punct") and t.head in heads and t.text != "?"}
        kept = (t.text_with_ws for t in doc if t.i not in left_out | cut)
        parts.append(_part(" ".join("".join(kept).split())))
    return tuple(parts)


def _conjuncts(token: Token) -> list[Token]:
    return list(_chained(token))


def _chained(token: Token) -> Iterator[Token]:
    """What is coordinated with it by "and", of the same kind of word."""
    joined = any(c.dep_ == "cc" and c.lower_ == "and" for c in token.children)
    for child in token.children:
        chained = list(_chained(child)) if child.dep_ == "conj" else []
        if child.dep_ == "conj" and child.tag_[:2] == token.tag_[:2] and (joined or chained):
            yield child
            yield from chained


def _own_subject(head: Token) -> bool:
    return any(child.dep_ in _SUBJECTS for child in head.children)


def _start(head: Token, before: Token) -> int:
    """Where what belongs to the head begins, after the head before it."""
    return min((c.left_edge.i for c in head.lefts if c.left_edge.i > before.i), default=head.i)


def _end(head: Token, whole: bool) -> int:
    """Where what belongs to the head alone ends."""
    if not whole:
        return head.i + 1
    after: Sequence[Token] = [c for c in head.rights if c.dep_ not in ("conj", "cc", "punct")]
    return max((c.right_edge.i for c in after), default=head.i) + 1
