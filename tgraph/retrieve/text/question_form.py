"""Question forms: single fact, comparison, list, indirect description, or collection overview.

Sentence structure and closed word classes (question words, comparatives, amount words, document
words) decide the form; topic words never do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tgraph.resources import word_set
from tgraph.retrieve.modes.base import Form
from tgraph.retrieve.reasons import WordedReason, explain
from tgraph.retrieve.text.comparison import comparison_of
from tgraph.retrieve.text.decomposition import decompose_question
from tgraph.retrieve.text.lexical import STOP_WORDS, words

LISTED = 3
"""Names that a reason tells."""

_WHOLE = word_set("questions", "whole")
_DOCUMENTS = word_set("questions", "documents")
_SUBJECTS = word_set("questions", "subjects")
_ANYTHING = word_set("questions", "anything")
_FOREMOST = word_set("questions", "foremost")
_SUMMING_UP = word_set("questions", "summing_up")
_COMPARING = word_set("questions", "comparing")
_NO_PLURALS = word_set("questions", "no_plurals")

_COUNTED = re.compile(r"\bhow (?:many|often)\b|\bnumber of\b", re.IGNORECASE)
_ENUMERATING = re.compile(
    r"^\W*(?:please |can you |could you )?(?:list|name|enumerate|give|show|tell)\b"
    r"(?: me)? (?:all|every|each|some|the|two|three|four|five|six|seven|eight|nine|ten|\d+)\b",
    re.IGNORECASE,
)
_KIND_ASKED = re.compile(r"\b(?:what|which)(?: (?:are|were|other|kinds? of|types? of))* ", re.I)
_COPULA = re.compile(r"^\W*(?:what|which|who)(?: all)? (?:are|were)\b(?: the)?", re.IGNORECASE)
_SAME = re.compile(
    r"\bsame\b|\bboth\b|\bin common\b|\bmore\b[^?]{1,80}\bthan\b|\w{2}er than\b"
    r"|\bdifferences? between\b|\bas \w+ as\b",
    re.IGNORECASE,
)
_OR = re.compile(r"\b(?:which|who|whose|what|is|are|was|were|did|do|does|has|have)\b.*\bor\b", re.I)
_ITSELF = re.compile(
    r"^\W*what(?: is|['’]s| are) (?:this|these|those|that|it|they|all (?:this|of this|these))"
    r"(?: \w+)? (?:all )?about\W*$",
    re.IGNORECASE,
)


_OPEN = frozenset(("what", "what's", "what’s", "which"))
_ASKING = _OPEN | {"who", "whom", "whose", "how", "where", "when", "why"}
_MODAL = frozenset(("can", "could", "should", "would", "might"))
_YES_OR_NO = frozenset(("is", "are", "was", "were", "do", "does", "did", "has", "have", "had"))
_DEFINITION = re.compile(r"^\W*what(?: is| are|['’]s)(?: an?)? [\w-]+\W*$", re.IGNORECASE)
_OVER_ALL = re.compile(
    r"\b(?:across|throughout|(?:all|runs?|running) through)((?:\W+\w+){1,4})", re.IGNORECASE
)
_ARTICLES = frozenset(("a", "an", "the"))


@dataclass(frozen=True, slots=True)
class QuestionForm:
    """A question form with its reason, phrased to follow "because"."""

    form: Form
    reason: str


def form_of(text: str, names: Sequence[str]) -> QuestionForm:
    """Classify the form of a question with the given entity names."""
    for form, reason in (
        ("whole", _explain_overview(text, names)),
        ("compared", _explain_comparison(text, names)),
        ("linked", _explain_description(text)),
        ("listed", _explain_list(text)),
    ):
        if reason:
            return QuestionForm(form, _explain_form(reason))  # type: ignore[arg-type]
    if not names:
        return QuestionForm("one", explain("form-unnamed"))
    target = "one thing, " if len(names) == 1 else "one fact about "
    return QuestionForm("one", _explain_form(f"asks for {target}{_join_names(names)}"))


def _explain_form(predicate: str) -> WordedReason:
    return explain("form", predicate=predicate)


def is_of_the_whole(text: str, names: Sequence[str]) -> bool:
    """Return whether a question with the given names addresses the document collection overall."""
    return bool(_explain_overview(text, names))


def _explain_overview(text: str, names: Sequence[str]) -> str:
    """Explain why a question is an overview: no names, and a request for summaries, foremost
    items or documents.

    Return an empty string for other questions."""
    question_words = words(text)
    if not question_words or any(not _is_of_documents(words(name)) for name in names):
        return ""
    foremost = [word for word in _drop_article_noun(question_words) if word in _FOREMOST]
    if not _is_open(question_words, foremost) or _COUNTED.search(text):
        return ""
    asking = _DOCUMENTS | _SUBJECTS | _SUMMING_UP
    remaining_words = [
        word for word in question_words if word not in STOP_WORDS | asking | _FOREMOST
    ]
    asks = bool(foremost) or not asking.isdisjoint(question_words)
    is_document_question = (
        asks and _is_of_documents(remaining_words) and not _DEFINITION.search(text)
    )
    if (
        is_document_question
        or _ITSELF.search(text)
        or (_is_over_all(text) and _are_several(remaining_words))
    ):
        return "asks about the documents as a whole"
    if summing := [word for word in question_words if word in _SUMMING_UP]:
        return f"names nothing and asks to sum up ({summing[0]})"
    if foremost and _are_several(remaining_words):
        return f"names nothing and asks for what is foremost ({foremost[0]})"
    return ""


def _is_of_documents(said: Sequence[str]) -> bool:
    """Return whether all words are document words, overview words or stop words."""
    return all(word in _WHOLE | _DOCUMENTS | STOP_WORDS for word in said)


def _drop_article_noun(said: Sequence[str]) -> list[str]:
    """Return question words; drop a final word preceded by an article, hence a noun: "Where is
    the key?"."""
    return list(said[:-1] if len(said) > 1 and said[-2] in _ARTICLES else said)


def _is_open(said: Sequence[str], foremost: Sequence[str]) -> bool:
    """Return whether a question leaves its subject open.

    Questions asking for a place, time, reason, measure, yes or no are closed; questions asking
    for a person count as open only with foremost words."""
    place = next((n for n, word in enumerate(said) if word in _ASKING), None)
    if place is None:
        return said[0] not in _YES_OR_NO
    if said[place] == "how":
        return place + 1 < len(said) and said[place + 1] in _MODAL | _YES_OR_NO
    return said[place] in _OPEN or (said[place] == "who" and bool(foremost))


def _is_over_all(text: str) -> bool:
    """Return whether a question asks for content running through all documents."""
    match = _OVER_ALL.search(text)
    return match is not None and not _DOCUMENTS.isdisjoint(words(match[1]))


def _are_several(rest: Sequence[str]) -> bool:
    """Return whether remaining words name nothing particular or a plural kind."""
    return not rest or (len(rest) == 1 and (_is_plural(rest[0]) or rest[0] in _ANYTHING))


def _explain_comparison(text: str, names: Sequence[str]) -> str:
    """Explain why a question compares things; other questions return an empty string."""
    if comparison := comparison_of(text):
        how = "asks to choose between" if comparison.asked == "which" else "compares"
        return f"{how} {_join_names(comparison.sides)}"
    if _OR.search(text) and len(names) > 1:
        return f"asks to choose between {_join_names(names)}"
    same = _SAME.search(text)
    if same and len(names) > 1:
        return f"compares {_join_names(names)} ({same.group().split()[0].lower()})"
    if compared := [word for word in words(text) if word in _COMPARING]:
        return f"asks for a comparison ({compared[0]})"
    return ""


def _explain_description(text: str) -> str:
    """Explain which entity a question describes instead of naming; return an empty string
    otherwise."""
    steps = decompose_question(text)
    if not steps:
        return ""
    described = steps[0].text.rstrip("?").split(" is ", 1)[-1]
    return f"describes “{described}” instead of naming it"


def _explain_list(text: str) -> str:
    """Explain why a question requests a list or count; other questions return an empty string."""
    if counted := _COUNTED.search(text):
        return f"asks for a count ({counted.group().lower()})"
    if _ENUMERATING.search(text):
        return "asks for a list"
    copula = _COPULA.search(text)
    kind = None if copula else _KIND_ASKED.search(text)
    match = copula or kind
    if match is None:
        return ""
    after = words(text[match.end() :])[:4]
    plural = next((word for word in after[: 4 if copula else 2] if _is_plural(word)), "")
    return f"asks for several things ({plural})" if plural else ""


def _is_plural(word: str) -> bool:
    return (
        len(word) > 3
        and word.endswith("s")
        and not word.endswith(("ss", "us", "is"))
        and (word not in _NO_PLURALS)
    )


def _join_names(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    last = f"{len(names) - LISTED} more" if len(names) > LISTED else names[-1]
    first = names[:LISTED] if len(names) > LISTED else names[:-1]
    return f"{', '.join(first)} and {last}"
