"""Who or what did a step, by which prompt, and at which cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Choice

from tgraph import vocabulary as v


@dataclass(frozen=True, slots=True)
class Agent:
    """A software, embedded method, model or person that a record names as responsible.

    ``kind`` is ``software``, ``method`` (the embedded default), ``model`` or ``person``, whom only
    a setting can name. One model at two providers (a package or the URL of a server) is two agents.
    """

    kind: Choice["software", "method", "model", "person"]
    name: str
    version: str = ""
    provider: str = ""

    @property
    def iri(self) -> str:
        provider = self.provider if self.kind == "model" else ""
        return v.agent_iri(self.kind, self.name, self.version, provider)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as used: a PROV plan identified by its text hash."""

    name: str
    text: str
    sha256: str

    @property
    def iri(self) -> str:
        return v.prompt_iri(self.name, self.sha256)


@dataclass(frozen=True, slots=True)
class Usage:
    """Cost of a step or session: tokens counted by the server, and number of calls.

    ``reasoning_tokens`` counts output tokens used for the model's reasoning."""

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.calls + other.calls,
            self.reasoning_tokens + other.reasoning_tokens,
        )


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class StepUsage:
    """What a step's calls for one purpose cost. Those answered from the cache, or by what ships
    with tgraph, are asked for and cost nothing.

    ``purpose`` is the name of the prompt, or else of the kind of call: embedding, reading, ...
    ``asked`` counts the calls on record, ``calls`` the calls that a server answered.
    """

    step: str
    purpose: str
    asked: int
    calls: int
    input_tokens: int
    output_tokens: int
