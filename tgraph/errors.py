"""What can go wrong, as one tree; the command line ends with the class's ``exit_code``.

TgraphError                 1
├── UsageError              2   the call itself is wrong
├── NotAGraphError          1   the folder holds no graph
├── FormatError             1   the graph was written by a newer tgraph
├── StoreError              1   the disk or the store failed
├── IngestError             1   one document can't be read; carries its path
├── ModelError              1   a model's reply can't be used
│   └── EndpointError       5   a model or store endpoint can't be reached or refuses
├── QueryError              1   a SPARQL query is wrong, refused or was stopped
└── VerificationError       4   an audit or a verification failed
"""

from __future__ import annotations


class TgraphError(Exception):
    """One clear sentence with, where there is one, the remedy."""

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message} {remedy}".strip())
        self.message = message
        self.remedy = remedy


class UsageError(TgraphError):
    exit_code = 2


class NotAGraphError(TgraphError):
    pass


class FormatError(TgraphError):
    pass


class StoreError(TgraphError):
    pass


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
