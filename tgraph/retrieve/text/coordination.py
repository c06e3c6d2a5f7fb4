"""Coordinated questions: a question asking several things, split into separate questions.

"When was the Fram built and who leads it?" has two asking clauses, "When and where was it
built?" two question words, "When was it built and lost?" two predicates. Words shared by the
whole question are repeated in each part: a pronoun is replaced by the subject of the first
part."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tgraph.resources import word_set
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
_SECOND = re.compile(r"\?\W+\w|\band (?:(?:of|in|for|by|at|to|from|on) )?(?:the )?[^\W\d_a-z]")
"""What a question has that asks in two sentences, or of two names."""
_LINKING = frozenset({"and", "but", "also", "then", "so"})
_COLLECTIVE = word_set("questions", "collective")
_TOGETHER = re.compile(
    r"\b(?:between|both|together|each other|same|common|shared?|relat\w+|differ\w*|and also)\b",
    re.IGNORECASE,
)
_SINGULAR = {"were": "was", "are": "is", "do": "does", "have": "has"}
_RELATIVE = frozenset({"relcl", "acl"})
_COMMON = frozenset({"NN", "NNS"})
_SUBJECTS = frozenset({"nsubj", "nsubjpass"})
_NAMES = frozenset({"NNP", "NNPS"})
_ROLES = (_SUBJECTS, frozenset({"dobj", "pobj", "attr"}))
_POSSESSIVES = frozenset({"its", "his", "her", "their"})
_OWNS = "'s"
_PRONOUN = re.compile(r"\b(?:it|he|she|they|him|them|its|his|her|their)\b", re.IGNORECASE)


@lru_cache(maxsize=256)
def split_question(question: str) -> tuple[QuestionStep, ...]:
    """Split a coordinated question into parts, keeping each part's words in ``phrase``; empty
    for a single question.

    Questions showing no coordination at a glance are not parsed."""
    text = " ".join(question.split())
    if not _GLANCE.search(text) or len(text.split()) > LONGEST:
        return ()
    from tgraph.extract.english.parser import analyse_texts

    doc = analyse_texts([text])[0]
    for split in (_split_clauses, _question_words, _split_predicates, _split_nouns):
        if len(parts := split(doc)) > 1:
            return parts[:MOST]
    return ()


@dataclass(frozen=True, slots=True)
class SplitQuestion:
    """Parts of a question that asks the same of two names, or in several sentences; ``joint`` is
    the two names together, which may be the name of one thing."""

    parts: tuple[QuestionStep, ...] = ()
    joint: str = ""


@lru_cache(maxsize=256)
def split_apart(question: str) -> SplitQuestion:
    """Split a question in several sentences, or about two names, into separate questions.

    "When were the Fram and the Nimrod built?" asks of each; what two do with each other ("When
    did Scott and Amundsen meet?") is one question."""
    text = " ".join(question.split())
    if not _SECOND.search(text) or len(text.split()) > LONGEST:
        return SplitQuestion()
    from tgraph.extract.english.parser import analyse_texts

    doc = analyse_texts([text])[0]
    if len(parts := _split_sentences(doc)) > 1:
        return SplitQuestion(parts[:MOST])
    return _split_names(doc)


def _build_part(text: str, words: str = "") -> QuestionStep:
    """Build a question part from question text and optional phrase words."""
    bare = text.strip(" ?.,;")
    phrase = (words or bare).strip(" ?.,;")
    return QuestionStep(
        f"{bare[:1].upper()}{bare[1:]}?", phrase=f"{phrase[:1].lower()}{phrase[1:]}"
    )


# --- clauses ---


def _split_clauses(doc: Doc) -> tuple[QuestionStep, ...]:
    """Split clauses beginning with "and" plus question word from the preceding clause."""
    asking = [t for t in doc if t.lower_ in _QUESTION_WORDS and not _describes(t)]
    starts = [start for t in asking if (start := _clause_start(t))]
    if not starts or asking[0].i >= starts[0]:
        return ()
    ends = [*(start - 1 for start in starts[1:]), len(doc)]
    first = doc[: starts[0] - 1]
    if not telling_words(first.text):
        return ()
    clause_texts = (doc[start:end].text for start, end in zip(starts, ends, strict=True))
    return (
        _build_part(first.text),
        *(_build_part(_resolve_pronoun(text, first), text) for text in clause_texts),
    )


def _clause_start(token: Token) -> int:
    """Return the start of a question word's clause, directly after "and"; 0 without preceding
    "and" or following verb."""
    start = token.i - (token.nbor(-1).tag_ == "IN" if token.i else 0)
    verbs = (t for t in token.doc[token.i + 1 :] if t.tag_.startswith(("VB", "MD")))
    return start if start > 1 and token.doc[start - 1].lower_ == "and" and any(verbs) else 0


def _describes(token: Token) -> bool:
    """Check a token for membership in a describing clause ("the man who built it and who sailed
    it")."""
    return any(clause_token.dep_ in _RELATIVE for clause_token in (token, *token.ancestors))


def _resolve_pronoun(text: str, before: Span) -> str:
    """Replace a text's first pronoun by its referent from the preceding clause."""
    match = _PRONOUN.search(text)
    referent = _find_referent(before, match.group().lower()) if match else ""
    if match is None or not referent:
        return text
    owner = match.group().lower() in _POSSESSIVES and text[match.end() :].strip(" ?.")
    return f"{text[: match.start()]}{referent}{_OWNS if owner else ''}{text[match.end() :]}"


def _find_referent(clause: Span, pronoun: str) -> str:
    """Find a pronoun's referent in a clause: plural pronouns prefer common nouns, singular
    pronouns prefer names."""
    names = [t for t in clause if t.tag_ in _NAMES and t.dep_ != "compound"][::-1]
    common = [t for roles in _ROLES for t in clause if t.dep_ in roles and t.tag_ in _COMMON]
    common = [t for t in common if t.lower_ not in TIMES]
    if pronoun in ("they", "them", "their"):
        heads = [*common, *names]
    elif pronoun in ("it", "its"):
        thing_names = [t for t in names if t.ent_type_ != "PERSON"]
        heads = [*thing_names, *common, *names]
    else:
        heads = [*names, *common]
    return _referent_phrase(heads[0], clause) if heads else ""


def _referent_phrase(head: Token, clause: Span) -> str:
    """Return the noun phrase of a head; "the" replaces a leading question word."""
    from tgraph.extract.english.parser import phrase_bounds

    start, end = phrase_bounds(head)
    start = min(start, head.left_edge.i)
    if clause.doc[start].lower_ in _QUESTION_WORDS:
        return f"the {clause.doc[start + 1 : end].text}"
    return str(clause.doc[start : min(end, clause.end)].text)


# --- sentences, and names of which the same is asked ---


def _split_sentences(doc: Doc) -> tuple[QuestionStep, ...]:
    """Split questions that follow each other; pronouns stand for what the first is about."""
    ends = [token.i for token in doc if token.text == "?"]
    spans = [doc[a:b] for a, b in zip((0, *(end + 1 for end in ends)), ends, strict=False)]
    first = spans[0] if spans else doc[:0]
    parts: list[QuestionStep] = []
    for span in spans:
        start = span.start
        while start < span.end and (doc[start].is_punct or doc[start].lower_ in _LINKING):
            start += 1
        asks = any(token.lower_ in _QUESTION_WORDS for token in doc[start : start + 3])
        if not asks or not telling_words(first.text):
            return ()
        text = doc[start : span.end].text
        parts.append(_build_part(_resolve_pronoun(text, first) if parts else text, text))
    return tuple(parts)


def _split_names(doc: Doc) -> SplitQuestion:
    """Ask of each of two coordinated names by itself."""
    from tgraph.extract.english.parser import verb_lemma

    head = next((token for token in doc if _is_name(token) and len(_coordinated(token)) == 1), None)
    if head is None or _TOGETHER.search(doc.text) or doc[0].lower_ not in _QUESTION_WORDS:
        return SplitQuestion()
    other = _coordinated(head)[0]
    verb = next((token for token in head.ancestors if token.tag_.startswith("VB")), head)
    if verb_lemma(verb) in _COLLECTIVE or _describes(head):
        return SplitQuestion()
    start, end = head.left_edge.i, other.right_edge.i + 1
    link = next(token.i for token in doc[head.i : end] if token.lower_ == "and")
    if doc[link + 1].tag_ == "IN" and start and doc[start - 1].lower_ == doc[link + 1].lower_:
        start -= 1
    before, after = _agree(doc[:start], head), doc[end:].text_with_ws
    parts = (f"{before} {doc[a:b].text} {after}" for a, b in ((start, link), (link + 1, end)))
    return SplitQuestion(
        tuple(_build_part(" ".join(part.split())) for part in parts), doc[start:end].text
    )


def _is_name(token: Token) -> bool:
    return token.i > 0 and token.text[:1].isupper() and token.tag_.startswith("NN")


def _coordinated(token: Token) -> list[Token]:
    """Return the names that "and" joins to a name, also where a preposition is repeated."""
    joined = _find_all_conjuncts(token)
    if not joined and token.head.tag_ == "IN":
        joined = [
            child
            for preposition in _find_all_conjuncts(token.head)
            for child in preposition.children
            if child.dep_ == "pobj"
        ]
    return [other for other in joined if _is_name(other)]


def _find_all_conjuncts(token: Token) -> list[Token]:
    joined = any(child.dep_ == "cc" and child.lower_ == "and" for child in token.children)
    return [child for child in token.children if child.dep_ == "conj"] if joined else []


def _agree(before: Span, head: Token) -> str:
    """Return the words before a subject, their auxiliary in the singular."""
    if head.dep_ not in _SUBJECTS:
        return before.text
    return " ".join(_SINGULAR.get(token.lower_, token.text) for token in before)


# --- what is coordinated within one clause ---


def _question_words(doc: Doc) -> tuple[QuestionStep, ...]:
    """Split two coordinated question words sharing one clause: "when and where"."""
    if len(doc) < 4 or doc[1].lower_ != "and" or doc[2].lower_ not in _QUESTION_WORDS:
        return ()
    if doc[0].lower_ not in _QUESTION_WORDS:
        return ()
    tail = doc[3:].text
    return tuple(_build_part(f"{word} {tail}") for word in (doc[0].text, doc[2].text))


def _split_predicates(doc: Doc) -> tuple[QuestionStep, ...]:
    """Split coordinated predicates of adverb questions ("when", "where", "why", "how").

    After "who" or "what", both predicates describe one answer and stay together."""
    if len(doc) < 2 or doc[0].lower_ not in _ADVERBS or not doc[1].tag_.startswith(("VB", "MD")):
        return ()
    return _split_heads(
        doc, lambda token: token.dep_ == "ROOT" and token.tag_.startswith("VB"), True
    )


def _split_nouns(doc: Doc) -> tuple[QuestionStep, ...]:
    """Split two requested properties sharing one owner: "What are the height and weight of the
    tower?"."""
    if len(doc) < 3 or doc[0].lower_ != "what" or doc[1].lower_ not in ("is", "are", "was", "were"):
        return ()
    return _split_heads(doc, lambda t: t.tag_ in _COMMON and t.dep_ in ("nsubj", "attr"), False)


def _split_heads(
    doc: Doc, is_first: Callable[[Token], bool], whole: bool
) -> tuple[QuestionStep, ...]:
    """Repeat a clause for each coordinated head alone; ``whole`` includes words following each
    head."""
    first = next((t for t in doc if is_first(t) and _list_conjuncts(t)), None)
    if first is None:
        return ()
    heads = [first, *_list_conjuncts(first)]
    if any(_own_subject(head) for head in heads[1:]):
        return ()
    before = (first, *heads)
    spans = [(_head_start(h, b), _head_end(h, whole)) for h, b in zip(heads, before, strict=False)]
    parts = []
    for at in range(len(heads)):
        left_out = {i for j, span in enumerate(spans) if j != at for i in range(*span)}
        cut = {t.i for t in doc if t.dep_ in ("cc", "punct") and t.head in heads and t.text != "?"}
        part_tokens = (t.text_with_ws for t in doc if t.i not in left_out | cut)
        parts.append(_build_part(" ".join("".join(part_tokens).split())))
    return tuple(parts)


def _list_conjuncts(token: Token) -> list[Token]:
    return list(_find_conjuncts(token))


def _find_conjuncts(token: Token) -> Iterator[Token]:
    """Yield a token's conjuncts joined by "and", limited to the same word class."""
    joined = any(c.dep_ == "cc" and c.lower_ == "and" for c in token.children)
    for child in token.children:
        chained = list(_find_conjuncts(child)) if child.dep_ == "conj" else []
        if child.dep_ == "conj" and child.tag_[:2] == token.tag_[:2] and (joined or chained):
            yield child
            yield from chained


def _own_subject(head: Token) -> bool:
    return any(child.dep_ in _SUBJECTS for child in head.children)


def _head_start(head: Token, before: Token) -> int:
    """Return the start of a head's own tokens, after the preceding head."""
    return min((c.left_edge.i for c in head.lefts if c.left_edge.i > before.i), default=head.i)


def _head_end(head: Token, whole: bool) -> int:
    """Return the end of tokens belonging to one head alone."""
    if not whole:
        return head.i + 1
    after: Sequence[Token] = [c for c in head.rights if c.dep_ not in ("conj", "cc", "punct")]
    return max((c.right_edge.i for c in after), default=head.i) + 1
