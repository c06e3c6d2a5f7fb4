"""Extensions: what a package adds to tgraph, as one value; and tgraph's own six.

The core imports no extension, and no extension imports another: the entry point group
``tgraph.extensions`` names them, and ``tgraph.plugins`` finds them. The module of an ``Extension``
is imported with every command that reads settings, so it imports nothing but this module, and each
field holds functions that import what they return.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from click import Command

    from tgraph.engine.checks import HealthCheck
    from tgraph.engine.session_reader import SessionWriter, VocabularyWriter
    from tgraph.explain.export.formats import PictureWriter
    from tgraph.index.vectors.base import VectorStore
    from tgraph.ingest.base import Loader
    from tgraph.models.base import ChatModel, Embedder
    from tgraph.record.observer import RecordObservers
    from tgraph.retrieve.base import Rank
    from tgraph.retrieve.modes.base import Mode
    from tgraph.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Extension:
    """What a package adds to tgraph; ``name`` tells extensions apart in messages.

    Each of the other fields has functions by the names that users give to what they return.
    """

    name: str
    commands: Mapping[str, Callable[[], Command]] = field(default_factory=dict)
    """Commands of ``tgraph``; ``"config import"`` is a command of the group ``config``."""
    modes: Mapping[str, Callable[[], Mode]] = field(default_factory=dict)
    """Modes of retrieval. A mode with a section of settings has its class in ``Mode.settings``."""
    loaders: Mapping[str, Callable[[], Loader]] = field(default_factory=dict)
    """Loaders of documents by media type."""
    graph_readers: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Readers of graphs for ``tgraph import``, by format: functions of languages, the base IRI,
    limits and the encoding of tokens, which return a ``GraphReader`` of interchange."""
    session_formats: Mapping[str, SessionWriter] = field(default_factory=dict)
    """Formats in which ``tgraph export`` and ``tgraph trace`` write a session."""
    pictures: Mapping[str, PictureWriter] = field(default_factory=dict)
    """Formats in which statements are drawn."""
    vocabularies: Mapping[str, VocabularyWriter] = field(default_factory=dict)
    """Vocabularies in which the RDF of a session is written."""
    chat_models: Mapping[str, Callable[[Settings], ChatModel]] = field(default_factory=dict)
    """Chat models by the value of ``chat.provider``."""
    embedders: Mapping[str, Callable[[Settings], Embedder]] = field(default_factory=dict)
    """Embedders by the value of ``embedding.provider``."""
    rerankers: Mapping[str, Callable[[Settings], Rank]] = field(default_factory=dict)
    """Functions that rank texts anew, by the value of ``rerank.provider``."""
    vector_stores: Mapping[str, Callable[[], VectorStore]] = field(default_factory=dict)
    """Stores of vectors by the name that ``vector_store`` is given."""
    observers: Mapping[str, Callable[[Settings], RecordObservers | None]] = field(
        default_factory=dict
    )
    """Who observes what is recorded; None where the settings want nobody."""
    health_checks: Mapping[str, HealthCheck] = field(default_factory=dict)
    """What ``tgraph doctor`` looks at beside installation and graph."""
    schemas: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    """Types that commands print as JSON, by the names of their schemas."""
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Functions of an open graph that other extensions call, such as the server."""
