"""The documents of a graph: listing them, and finding one by what a person types."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from tgraph import vocabulary as v
from tgraph.errors import UsageError, nearest_names
from tgraph.explain.erased import Erasure, erasure_of_document
from tgraph.explain.safety import one_line
from tgraph.record.rewriter import is_mark
from tgraph.store.base import Store, select, text_of

_SHORTEST = 4
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """A document under one of its paths. ``standing`` is False once it was superseded
    there, or retracted."""

    document: str
    title: str
    path: str
    media_type: str
    taken: str
    standing: bool


def list_documents(store: Store) -> list[DocumentSummary]:
    """Every document under every path it was taken in by, those that stand first."""
    found = [
        DocumentSummary(
            document=text_of(row["document"]),
            title=text_of(row["title"]),
            path=text_of(row["path"]),
            media_type=text_of(row["type"]),
            taken=text_of(row["taken"]),
            standing=row["ended"] is None,
        )
        for row in select(store, "trace/documents")
    ]
    return sorted(found, key=lambda d: (not d.standing, d.path, d.taken, d.document))


def find_document(store: Store, name: str) -> DocumentSummary:
    """The document of an IRI, a content hash, a path, a title, or an unambiguous beginning or end
    of one. What stands goes before what was superseded. ``UsageError`` for none or several."""
    documents = list_documents(store)
    for matches in _ways(name):
        for wanted in (True, False):
            found = _distinct(d for d in documents if d.standing is wanted and matches(d))
            if len(found) == 1:
                return found[0]
            if found:
                shown = ", ".join(d.path for d in found[:_SHOWN])
                more = ", ..." if len(found) > _SHOWN else ""
                raise UsageError(
                    f"{name!r} could be any of {len(found)} documents ({shown}{more}).",
                    "Say more of the path.",
                )
    raise _unknown(store, name, documents)


def _unknown(store: Store, name: str, documents: list[DocumentSummary]) -> UsageError:
    """What to say of a name that no document has: an erasure may have taken name and text."""
    erasure = _erasure_of_file(store, name)
    if erasure is not None:
        return UsageError(f"{name!r} {_erased(erasure)}.", f"It is {erasure.document}.")
    known = list(dict.fromkeys(d.path for d in documents if not is_mark(d.path)))
    ends = [path.rpartition("/")[2] for path in known]
    names = [
        path if "/" in name or ends.count(end) > 1 else end
        for path, end in zip(known, ends, strict=True)
    ]
    remedies = [nearest_names(name, names, most=_SHOWN)]
    for document in dict.fromkeys(d.document for d in documents if is_mark(d.path)):
        if (erasure := erasure_of_document(store, document)) is not None:
            remedies.append(f"{document} {_erased(erasure)}, with its name.")
    remedy = " ".join(filter(None, remedies[: 1 + _SHOWN]))
    return UsageError(f"There is no document {name!r}.", remedy or "Nothing has been indexed yet.")


def _erasure_of_file(store: Store, name: str) -> Erasure | None:
    """The erasure of what a file holds that still is on the disk."""
    try:
        with Path(name).open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return None
    return erasure_of_document(store, v.document_iri(digest))


def _erased(erasure: Erasure) -> str:
    return f"was erased on {erasure.time[:10]} ({one_line(erasure.reason)})"


def _ways(name: str) -> list[Callable[[DocumentSummary], bool]]:
    """How a name may name a document, the strictest way first."""
    path = os.path.normpath(name)
    digest = name.removeprefix(v.document_iri("")).lower()
    folded = name.casefold()
    ways: list[Callable[[DocumentSummary], bool]] = [
        lambda d: d.document == name,
        lambda d: d.path == name or os.path.normpath(d.path) == path,
        lambda d: os.path.abspath(d.path) == os.path.abspath(name),  # noqa: PTH100
        lambda d: d.path.endswith(f"/{path}"),
        lambda d: d.title.casefold() == folded,
    ]
    if len(digest) >= _SHORTEST:
        ways.append(lambda d: d.document.removeprefix(v.document_iri("")).startswith(digest))
    if folded:
        ways.append(lambda d: d.path.rpartition("/")[2].casefold().startswith(folded))
        ways.append(lambda d: d.title.casefold().startswith(folded))
    return ways


def _distinct(found: Iterable[DocumentSummary]) -> list[DocumentSummary]:
    by_content: dict[str, DocumentSummary] = {}
    for document in found:
        by_content.setdefault(document.document, document)
    return list(by_content.values())
