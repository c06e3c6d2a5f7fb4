"""What the package adds to tgraph. Each function imports what it returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tgraph.extensions import Extension

if TYPE_CHECKING:
    from click import Command

    from tgraph.ingest.base import Loader
    from tgraph.models.base import ChatModel
    from tgraph.retrieve.modes.base import Mode
    from tgraph.settings import Settings


def _entries() -> Command:
    from tgraph_logbook.command import entries

    return entries


def _verbatim() -> Mode:
    from tgraph_logbook.mode import VERBATIM

    return VERBATIM


def _logbooks() -> Loader:
    from tgraph_logbook.loader import LOGBOOKS

    return LOGBOOKS


def _quoting(settings: Settings) -> ChatModel:
    from tgraph_logbook.model import QuotingModel

    return QuotingModel()


EXTENSION = Extension(
    name="logbook",
    commands={"entries": _entries},
    modes={"verbatim": _verbatim},
    loaders={"text/x-logbook": _logbooks},
    chat_models={"quoting": _quoting},
)
