"""What became of documents that say a thing, where none that stood for a session does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tgraph.errors import UsageError
from tgraph.explain.earlier import Accession, Earlier, Place
from tgraph.explain.erased import erasures_since
from tgraph.explain.expected import Expected
from tgraph.explain.safety import one_line
from tgraph.retrieve.lexical import terms

_SHOWN = 5
_MOST_PLACES = 1000
_EXTRACTED = "It has been extracted since; a new session can find it."


def why_absent(earlier: Earlier, expected: Expected) -> tuple[str, list[str]]:
    """Why no document that stood says it, in a sentence or two, and what has come since."""
    gone, came = [], []
    for document in _documents(earlier, expected):
        alike = [a for a in earlier.accessions if a.document == document]
        gone += [max(before, key=_end)] if (before := [a for a in alike if _was_gone(a)]) else []
        came += [max(since, key=_end)] if (since := [a for a in alike if not _was_gone(a)]) else []
    return _reason(gone, expected), _notes(earlier, expected, came)


def extracted_since(earlier: Earlier, expected: Expected) -> list[str]:
    """A note where more was extracted of it after the session, of documents that stand now."""
    now = {a.document for a in earlier.accessions if not a.ended}
    return [_EXTRACTED] if any(earlier.document_of(e) in now for e in expected.later) else []


def check_decidable(earlier: Earlier, expected: Expected, wanted: str) -> None:
    """``UsageError`` where a document that the session could know was erased since, so that nobody
    can tell what it said. Documents themselves stay on record."""
    if expected.kind in ("document", "chunk"):
        return
    erasures = erasures_since(earlier.store, earlier.started)
    for erasure in reversed(erasures):
        if erasure.document in earlier.documents:
            raise UsageError(
                f"It can't be decided what the session could know of {one_line(wanted, 120)!r}: "
                f"text that it could read was erased on {erasure.time[:10]} ({erasure.reason}).",
                "What has been erased stays erased; ask the question again.",
            )


def _documents(earlier: Earlier, expected: Expected) -> list[str]:
    """The documents that say it and did not stand."""
    if expected.kind in ("document", "chunk"):
        found = sorted(expected.documents)
    else:
        found = sorted({earlier.document_of(item) for item in expected.later})
        found += [place.document for place in islice(_saying(earlier, expected), _MOST_PLACES)]
    return [d for d in dict.fromkeys(found) if d not in earlier.documents]


def _saying(earlier: Earlier, expected: Expected) -> Iterator[Place]:
    """Where they say it; of a fact, sentences that name both its ends."""
    first, *others = expected.names or ((expected.label,),)
    for place in earlier.find(first, known=False):
        words = set(terms(earlier.around(place).quote)) if others else set()
        if all(any(set(terms(name)) <= words for name in group) for group in others):
            yield place


def _was_gone(accession: Accession) -> bool:
    return accession.state in ("superseded", "retracted")


def _end(accession: Accession) -> tuple[bool, str]:
    """The last to end; what stands goes after all that ended."""
    return not accession.ended, accession.ended.removesuffix("Z")


def _reason(gone: list[Accession], expected: Expected) -> str:
    if not gone:
        return "No document that stood when the question was asked says it."
    says = "" if expected.kind in ("document", "chunk") else "says it, but "
    first, *others = gone
    reason = f"{first.path} {says}had been {_ending(first)} when the question was asked."
    if others:
        paths = ", ".join(dict.fromkeys(a.path for a in others[:_SHOWN]))
        more = ", ..." if len(others) > _SHOWN else ""
        reason += f" Others that say it did not stand either: {paths}{more}."
    return reason


def _notes(earlier: Earlier, expected: Expected, came: list[Accession]) -> list[str]:
    notes = extracted_since(earlier, expected)
    standing = list(dict.fromkeys(a.path for a in came if not a.ended))[:_SHOWN]
    if standing:
        notes.append(f"It is in a document that was taken in since: {', '.join(standing)}.")
    for lost in [a for a in came if a.ended][:_SHOWN]:
        notes.append(f"{lost.path} was taken in since, and was {_ending(lost)}.")
    return notes


def _ending(accession: Accession) -> str:
    """How it ceased to stand, and when."""
    day = accession.ended[:10]
    if accession.ending == "superseded":
        return f"replaced by a new version (on {day})"
    return f"retracted (on {day}: {one_line(accession.why)})"
