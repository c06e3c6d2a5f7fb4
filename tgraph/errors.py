"""tgraph's error classes, in a tree; the command line exits with the class's ``exit_code``.

TgraphError                 1 ├── UsageError              2   the call itself is wrong │   └──
UnknownNameError    2   the name is unknown ├── NotAGraphError          1   the folder holds no
graph ├── FormatError             1   the graph was written by a newer tgraph ├── StoreError
1   the disk or the store failed │   ├── NoCollectionError   1   the named collection does not
exist │   ├── NothingIndexedError 1   the collection holds no knowledge yet │   ├──
EvidenceError       4   a stored text differs from its record │   ├── ErasedTextError     1   a
text was erased on purpose │   └── DamagedStoreError   1   a file of the store is damaged;
carries its path ├── IngestError             1   one document can't be read; carries its path
├── ModelError              1   a model's reply can't be used │   ├── RefusedPromptError  1   a
server refuses a prompt and accepts others │   └── EndpointError       5   a model or store
endpoint can't be reached or refuses ├── QueryError              1   a SPARQL query is wrong,
refused or was stopped └── VerificationError       4   an audit or a verification failed"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

from tgraph.masking import mask_urls

_NEAR, _LIKE = 3, 0.6


class TgraphError(Exception):
    """A tgraph error: one-sentence message, optional remedy; secrets of URLs are masked."""

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        message, remedy = mask_urls(message), mask_urls(remedy)
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
    """A missing knowledge error: the required kind of knowledge is not indexed."""


class EmptyCollectionError(NothingIndexedError):
    """An empty collection error: nothing has been indexed into the collection yet."""


class EvidenceError(StoreError):
    """An error for recorded quotes that differ from stored text; its message locates the
    mismatch."""

    exit_code = 4


class ErasedTextError(StoreError):
    """An error for text erased on purpose, as an erasure record confirms."""


class DamagedStoreError(StoreError):
    def __init__(self, path: str | PathLike[str], reason: str = "") -> None:
        super().__init__(
            f"The store is damaged at {path}{f' ({reason})' if reason else ''}.",
            "`tgraph doctor --repair` rebuilds all derived files, and lists the files that need "
            "a backup.",
        )
        self.path = str(path)


class IngestError(TgraphError):
    def __init__(self, path: str, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.path = path


class ModelError(TgraphError):
    pass


class RefusedPromptError(ModelError):
    """An error for a prompt that the model server refuses while it accepts other prompts in the
    same form."""


class EndpointError(ModelError):
    exit_code = 5


class QueryError(TgraphError):
    pass


class VerificationError(TgraphError):
    exit_code = 4


def nearest_names(
    name: str, known: Iterable[str], *, lead: str = "There are", most: int = 8
) -> str:
    """Return a remedy for an unknown name: similar known names, else ``lead`` followed by at
    most ``most`` known names; empty without known names."""
    from difflib import get_close_matches

    names = list(dict.fromkeys(known))
    lowered = {known_name.casefold(): known_name for known_name in names}
    close = get_close_matches(name.casefold(), lowered, _NEAR, _LIKE)
    if close:
        return f"Did you mean {' or '.join(lowered[known_name] for known_name in close)}?"
    ellipsis = ", ..." if len(names) > most else ""
    return f"{lead}: {', '.join(names[:most])}{ellipsis}." if names else ""
