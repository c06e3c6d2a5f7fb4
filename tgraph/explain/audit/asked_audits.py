"""Audits asked for in words: a question becomes the name of an audit with its arguments, or is
refused.

As with computed answers, each word must have an account: by what the audit says of itself, or as
an argument that the record has. The record's shape isn't that of knowledge, so that questions are
linked to the named audits, and not to queries of the algebra."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tgraph.errors import UsageError
from tgraph.explain.audit.named_audits import Audit, Parameter, list_audits
from tgraph.explain.trace.documents import list_documents
from tgraph.retrieve.text.lexical import term_set, words
from tgraph.store.base import Store

_TELLING = frozenset(("no", "not", "never", "nobody", "nothing", "only", "without", "none"))
"""Words that change what is asked, though they carry no content elsewhere."""
_MOST_TELLING = 8
"""Audits that tell of a stem by which one of them can be known."""
_LEAST = 0.25
"""The likeness below which an audit is not what is asked for."""
_FREE = term_set("show list tell give find name please thing record audit")
"""Stems that ask for a listing, whatever is listed."""
_SESSION = re.compile(
    r"\b(?:session|answer)?\s*([0-9a-f]{8}(?:-[0-9a-f]{4}){0,3}(?:-[0-9a-f]{12})?)\b"
    r"|\b(?:the |my )?(last|latest) (?:session|answer|question)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\b(\d{1,6})\b")
_DATE = re.compile(r"\b(since|until) (\d{4}-\d{2}-\d{2})\b", re.IGNORECASE)
_QUOTED = re.compile(r"[“\"]([^“”\"]+)[”\"]")


@dataclass(frozen=True, slots=True)
class AskedAudit:
    """The audit that a question asks for, with its arguments in order."""

    audit: Audit
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Argument:
    """A part of a question that names something: the kind of parameter, the name if there may be
    several, and the value."""

    kind: str
    value: str
    name: str = ""


def find_asked_audit(store: Store, question: str) -> AskedAudit:
    """Return the audit that a question asks for. Raise ``UsageError`` where no audit accounts for
    all its words, or several do as well."""
    remainder, arguments = _take_arguments(store, question)
    asked = _words_of(remainder) - _FREE
    stems = {audit.name: _stems(audit) for audit in list_audits()}
    fitting = [
        (likeness, AskedAudit(audit, filled))
        for audit in list_audits()
        if (arguments or any(_is_distinctive(stem, stems.values()) for stem in asked))
        and asked <= stems[audit.name]
        and (likeness := _likeness(audit, asked)) >= _LEAST
        and (filled := _fill(audit.parameters, arguments)) is not None
    ]
    fitting.sort(key=lambda pair: -pair[0])
    if not fitting:
        unknown = _describe_unknown(asked, stems.values())
        raise UsageError(
            f"No audit is what “{question[:200]}” asks for.{unknown}",
            "`tgraph audit --list` has them all, each with the question that it answers.",
        )
    if len(fitting) > 1 and fitting[0][0] == fitting[1][0]:
        names = " or ".join(
            candidate.audit.name for score, candidate in fitting if score == fitting[0][0]
        )
        raise UsageError(f"The question may mean {names}.", "Name the audit.")
    return fitting[0][1]


def _stems(audit: Audit) -> frozenset[str]:
    """Return the stems of all that an audit says of itself."""
    texts = (audit.name.replace("-", " "), audit.title, audit.question, audit.words)
    return _words_of(" ".join((*texts, *audit.columns)))


def _words_of(text: str) -> frozenset[str]:
    """Return the stems of a text, and the words in it that change what is asked."""
    return term_set(text) | (_TELLING & set(words(text)))


def _likeness(audit: Audit, asked: frozenset[str]) -> float:
    """Return how much of an audit's title and words a question has: as precise as it is whole."""
    title = _words_of(f"{audit.name.replace('-', ' ')} {audit.title} {audit.words}")
    shared = len(asked & title)
    title_stems = _words_of(f"{audit.name.replace('-', ' ')} {audit.title}")
    return round(2 * shared / (len(asked) + len(title_stems)), 6)


def _is_distinctive(stem: str, stems_of_audits: Iterable[frozenset[str]]) -> bool:
    """Return whether few audits tell of a stem; of answers and documents nearly all do."""
    return sum(stem in stems for stems in stems_of_audits) <= _MOST_TELLING


def _describe_unknown(asked: frozenset[str], stems_of_audits: Iterable[frozenset[str]]) -> str:
    unknown = sorted(asked.difference(*stems_of_audits))
    return f" No audit tells of: {', '.join(unknown)}." if unknown else ""


def _fill(
    parameters: Sequence[Parameter], arguments: Sequence[_Argument]
) -> tuple[str, ...] | None:
    """Return the arguments in the order of the parameters; None where a required one is missing, or
    an argument has no parameter."""
    unused, values = list(arguments), []
    for parameter in parameters:
        argument = next(
            (a for a in unused if a.kind == parameter.kind and a.name in ("", parameter.name)), None
        )
        if argument is None and parameter.default is None:
            return None
        if argument is not None:
            unused.remove(argument)
        values.append(argument.value if argument else parameter.default or "")
    return None if unused else tuple(values)


def _take_arguments(store: Store, question: str) -> tuple[str, list[_Argument]]:
    """Return the question without what names something, and what that names."""
    arguments = []
    remainder = question
    for document in _names_in(store, question):
        remainder = _without(remainder, document)
        arguments.append(_Argument("document", document))
        break
    for pattern, kind in ((_DATE, "text"), (_QUOTED, "text"), (_SESSION, "session")):
        if match := pattern.search(remainder):
            remainder = remainder[: match.start()] + " " + remainder[match.end() :]
            if pattern is _DATE:
                arguments.append(_Argument(kind, match[2], match[1].casefold()))
            elif kind == "session":
                arguments.append(_Argument(kind, match[1] or "last"))
            else:
                arguments.append(_Argument(kind, match[1]))
    if match := _NUMBER.search(remainder):
        remainder = remainder[: match.start()] + remainder[match.end() :]
        arguments.append(_Argument("number", match[1]))
    return remainder, arguments


def _names_in(store: Store, question: str) -> Iterator[str]:
    """Yield the paths, file names and titles of documents that a question has, longest first."""
    folded = question.casefold()
    names = {
        name
        for document in list_documents(store)
        for name in (document.path, document.path.rpartition("/")[2], document.title)
        if name and re.search(rf"(?<!\w){re.escape(name.casefold())}(?!\w)", folded)
    }
    yield from sorted(names, key=lambda name: (-len(name), name))


def _without(text: str, name: str) -> str:
    """Return a text without a name, and without the quotation marks around it."""
    pattern = rf"[“\"']?(?<!\w){re.escape(name)}(?!\w)[”\"']?"
    return re.sub(pattern, " ", text, count=1, flags=re.IGNORECASE)
