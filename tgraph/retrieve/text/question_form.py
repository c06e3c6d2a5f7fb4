"""The form of a question: whether it asks for one thing, for a comparison, for a list, for what is
found through something else, or for the documents as a whole.

It is told by how a question is built and by closed classes of words (question words, comparatives,
words for amounts and for documents), never by what it is about.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tgraph.resources import word_set
from tgraph.retrieve.modes.base import Form
from tgraph.retrieve.text.comparison import comparison_of
from tgraph.retrieve.text.decomposition import decomposed
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
    """A form, and what shows it, as part of a sentence that begins with "because"."""

    form: Form
    reason: str


def form_of(text: str, names: Sequence[str]) -> QuestionForm:
    """The form of a question that names these things."""
    for form, reason in (
        ("whole", _whole(text, names)),
        ("compared", _compared(text, names)),
        ("linked", _linked(text)),
        ("listed", _listed(text)),
    ):
        if reason:
            return QuestionForm(form, reason)  # type: ignore[arg-type]
    if not names:
        return QuestionForm("one", "it names nothing that is known and asks for one thing")
    thing = "one thing" if len(names) == 1 else "one fact about"
    return QuestionForm(
        "one", f"it asks for {thing}{', ' if len(names) == 1 else ' '}{_all(names)}"
    )


def is_of_the_whole(text: str, names: Sequence[str]) -> bool:
    """Whether a question that names these things asks about the documents as a whole."""
    return bool(_whole(text, names))


def _whole(text: str, names: Sequence[str]) -> str:
    """It names nothing, and asks for a summary, for what is foremost, or about the documents."""
    said = words(text)
    if not said or any(not _is_of_documents(words(name)) for name in names):
        return ""
    foremost = [word for word in _adjectives(said) if word in _FOREMOST]
    if not _is_open(said, foremost) or _COUNTED.search(text):
        return ""
    asking = _DOCUMENTS | _SUBJECTS | _SUMMING_UP
    rest = [word for word in said if word not in STOP_WORDS | asking | _FOREMOST]
    asks = bool(foremost) or not asking.isdisjoint(said)
    about = asks and _is_of_documents(rest) and not _DEFINITION.search(text)
    if about or _ITSELF.search(text) or (_is_over_all(text) and _are_several(rest)):
        return "it asks about the documents as a whole"
    if summing := [word for word in said if word in _SUMMING_UP]:
        return f"it names nothing and asks to sum up ({summing[0]})"
    if foremost and _are_several(rest):
        return f"it names nothing and asks for what is foremost ({foremost[0]})"
    return ""


def _is_of_documents(said: Sequence[str]) -> bool:
    """Whether the words are all of those that ask about documents."""
    return all(word in _WHOLE | _DOCUMENTS | STOP_WORDS for word in said)


def _adjectives(said: Sequence[str]) -> list[str]:
    """The words without a last one that an article makes a noun: "Where is the key?"."""
    return list(said[:-1] if len(said) > 1 and said[-2] in _ARTICLES else said)


def _is_open(said: Sequence[str], foremost: Sequence[str]) -> bool:
    """Whether a question can be about everything: not one for a place, a time, a reason or a
    measure, for a yes or no, or for a person unless the foremost of them are meant."""
    place = next((n for n, word in enumerate(said) if word in _ASKING), None)
    if place is None:
        return said[0] not in _YES_OR_NO
    if said[place] == "how":
        return place + 1 < len(said) and said[place + 1] in _MODAL | _YES_OR_NO
    return said[place] in _OPEN or (said[place] == "who" and bool(foremost))


def _is_over_all(text: str) -> bool:
    """Whether it asks what goes through all of the documents."""
    found = _OVER_ALL.search(text)
    return found is not None and not _DOCUMENTS.isdisjoint(words(found[1]))


def _are_several(rest: Sequence[str]) -> bool:
    """Whether what is asked for is nothing particular, or several things of one kind."""
    return not rest or (len(rest) == 1 and (_is_plural(rest[0]) or rest[0] in _ANYTHING))


def _compared(text: str, names: Sequence[str]) -> str:
    """It sets two things side by side."""
    if comparison := comparison_of(text):
        how = "asks to choose between" if comparison.asked == "which" else "compares"
        return f"it {how} {_all(comparison.sides)}"
    if _OR.search(text) and len(names) > 1:
        return f"it asks to choose between {_all(names)}"
    same = _SAME.search(text)
    if same and len(names) > 1:
        return f"it compares {_all(names)} ({same.group().split()[0].lower()})"
    if compared := [word for word in words(text) if word in _COMPARING]:
        return f"it asks for a comparison ({compared[0]})"
    return ""


def _linked(text: str) -> str:
    """It describes something that it asks about instead of naming it."""
    steps = decomposed(text)
    if not steps:
        return ""
    described = steps[0].text.rstrip("?").split(" is ", 1)[-1]
    return f"it describes “{described}” instead of naming it"


def _listed(text: str) -> str:
    """It asks for several things, or for how many there are."""
    if counted := _COUNTED.search(text):
        return f"it asks for a count ({counted.group().lower()})"
    if _ENUMERATING.search(text):
        return "it asks for a list"
    copula = _COPULA.search(text)
    kind = None if copula else _KIND_ASKED.search(text)
    found = copula or kind
    if found is None:
        return ""
    after = words(text[found.end() :])[:4]
    plural = next((word for word in after[: 4 if copula else 2] if _is_plural(word)), "")
    return f"it asks for several things ({plural})" if plural else ""


def _is_plural(word: str) -> bool:
    return (
        len(word) > 3
        and word.endswith("s")
        and not word.endswith(("ss", "us", "is"))
        and (word not in _NO_PLURALS)
    )


def _all(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    last = f"{len(names) - LISTED} more" if len(names) > LISTED else names[-1]
    first = names[:LISTED] if len(names) > LISTED else names[:-1]
    return f"{', '.join(first)} and {last}"
