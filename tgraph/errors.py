"""What can go wrong, as one tree; the command line ends with the class's ``exit_code``.

TgraphError                 1
├── UsageError              2   the call itself is wrong
│   └── UnknownNameError    2   nothing is called so
├── NotAGraphError          1   the folder holds no graph
├── FormatError             1   the graph was written by a newer tgraph
├── StoreError              1   the disk or the store failed
│   ├── NoCollectionError   1   there is no collection of that name
│   ├── NothingIndexedError 1   the collection holds no knowledge yet
│   ├── EvidenceError       4   a stored text is not what the record says it is
│   ├── ErasedTextError     1   a text was erased on purpose
│   └── DamagedStoreError   1   a file of the store is damaged; carries its path
├── IngestError             1   one document can't be read; carries its path
├── ModelError              1   a model's reply can't be used
│   └── EndpointError       5   a model or store endpoint can't be reached or refuses
├── QueryError              1   a SPARQL query is wrong, refused or was stopped
└── VerificationError       4   an audit or a verification failed
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

_NEAR, _LIKE = 3, 0.6


class TgraphError(Exception):
    """One clear sentence with, where there is one, the remedy."""

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message} {remedy}".strip())
        self.message = message
        self.remedy = remedy


class UsageError(TgraphError):
    exit_code = 2


class UnknownNameError(UsageError):
    pass


class NotAGraphError(TgraphError):
    pass


class FormatError(TgraphError):
    pass


class StoreError(TgraphError):
    pass


class NoCollectionError(StoreError):
    pass


class NothingIndexedError(StoreError):
    """Nothing was indexed, or nothing of the kind that is needed."""


class EvidenceError(StoreError):
    """What is on record of a place is not what the stored text says there; names the place."""

    exit_code = 4


class ErasedTextError(StoreError):
    """The text was erased on purpose, and an erasure on record says so."""


class DamagedStoreError(StoreError):
    def __init__(self, path: str | PathLike[str], reason: str = "") -> None:
        super().__init__(
            f"The store is damaged at {path}{f' ({reason})' if reason else ''}.",
            "`tgraph doctor --repair` makes anew what can be made anew, and says where a backup "
            "is needed.",
        )
        self.path = str(path)


class IngestError(TgraphError):
    def __init__(self, path: str, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.path = path


class ModelError(TgraphError):
    pass


class EndpointError(ModelError):
    exit_code = 5


class QueryError(TgraphError):
    pass


class VerificationError(TgraphError):
    exit_code = 4


def nearest_names(
    name: str, known: Iterable[str], *, lead: str = "There are", most: int = 8
) -> str:
    """The remedy for a name that there is not: the known ones most like it, else the first ``most``
    of them after ``lead``; empty where none is known."""
    from difflib import get_close_matches

    names = list(dict.fromkeys(known))
    lowered = {each.casefold(): each for each in names}
    close = get_close_matches(name.casefold(), lowered, _NEAR, _LIKE)
    if close:
        return f"Did you mean {' or '.join(lowered[each] for each in close)}?"
    more = ", ..." if len(names) > most else ""
    return f"{lead}: {', '.join(names[:most])}{more}." if names else ""
