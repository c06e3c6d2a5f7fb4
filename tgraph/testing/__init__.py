"""Public fakes for tests of programs that use tgraph: no key, no network, the same every time.

- ``ScriptedModel``: a language model that says what it was told to, or something plausible.
- ``RecordedModel``: gives replies of a real model, recorded elsewhere, to the prompts they fit.
- ``ScriptedServer``: the same as a small OpenAI-compatible HTTP server on this machine, with faults
  on request; ``python -m tgraph.testing`` runs one.
- ``Fault``: what goes wrong, where and how often.
- ``HashingEmbedder``: vectors that know words, without a model.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tgraph.models.hashing import HashingEmbedder
    from tgraph.testing.faults import Fault
    from tgraph.testing.recorded import RecordedModel, read_recorded
    from tgraph.testing.scripted_model import ScriptedModel, ticking_clock
    from tgraph.testing.server import ScriptedServer, ServerRequest

__all__ = [
    "Fault",
    "HashingEmbedder",
    "RecordedModel",
    "ScriptedModel",
    "ScriptedServer",
    "ServerRequest",
    "read_recorded",
    "ticking_clock",
]

_HOMES = {
    "Fault": "tgraph.testing.faults",
    "HashingEmbedder": "tgraph.models.hashing",
    "RecordedModel": "tgraph.testing.recorded",
    "ScriptedModel": "tgraph.testing.scripted_model",
    "ScriptedServer": "tgraph.testing.server",
    "ServerRequest": "tgraph.testing.server",
    "read_recorded": "tgraph.testing.recorded",
    "ticking_clock": "tgraph.testing.scripted_model",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
