"""What a mode of retrieval is: all that sets it apart from the others, as one value.

A mode's module is read with the settings, by every command. So it imports nothing but this module
and other modes, and names its cut-offs, which are imported when they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from tgraph.plugins import Registry

PROMPT = 4_000
"""Tokens for a prompt's own text and the conversation, beside the evidence."""

Pipeline = Literal["two stages", "map-reduce", "follow-ups", "computed", "alone"]
"""How an answer comes about; ``tgraph.engine.ask.method_factory`` has the method of each."""

Form = Literal["one", "linked", "compared", "listed", "whole"]
"""What form a question has: it asks for one thing, for what is found through something else, for a
comparison, for a list or a count, or for the documents as a whole."""

Topic = Literal["start", "keywords", "limits", "reports"]
"""What a flag is about: where retrieval starts, from what, how much there is, which reports."""

Level = Literal["low", "high"]
"""Keywords for what a question names (low), and for its themes."""


class Address:
    """The mark of a setting that names where data or keys are sent."""


ADDRESS = Address()


class Section(BaseModel):
    """A section of the settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def admit_added(registry: Registry) -> WrapValidator:
    """Return a validator that admits the names of a registry beside the names of the core.

    The error of another name lists the names of the registry too."""

    def validate(value: Any, validate_own: ValidatorFunctionWrapHandler) -> Any:
        try:
            return validate_own(value)
        except ValidationError as error:
            if value in registry.names():
                return value
            if not registry.names():
                raise
            added = ", ".join(map(repr, sorted(registry.names())))
            raise ValueError(f"{error.errors()[0]['msg']}, or of an extension {added}") from None

    return WrapValidator(validate)


@dataclass(frozen=True, slots=True)
class Judged:
    """Selection by judging edges individually, using the model or the embedded selector.

    ``tokens`` is the budget of a complete prompt."""

    tokens: int


@dataclass(frozen=True, slots=True)
class Shared:
    """Selection of candidates in order; each kind group gets a share of ``tokens``."""

    tokens: int
    shares: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Capped:
    """Selection of candidates in order, limited by ``tokens`` and by token caps per kind."""

    tokens: int
    caps: Mapping[str, int] = field(default_factory=dict)


SelectionRule = Judged | Shared | Capped


@dataclass(frozen=True, slots=True)
class KeywordNeed:
    """A mode's need for keywords: keyword levels, plus keywords supplied by the settings."""

    levels: tuple[Level, ...]
    given: Callable[[Any], tuple[Sequence[str], Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Flag:
    """An ``ask`` flag useful only for some modes.

    ``least`` makes the flag a number from that minimum on, ``share`` a number from 0 to 1,
    ``choices`` a choice from the list; ``multiple`` allows repetition. Without any of these,
    the flag switches something on or off. The help groups flags by ``topic``."""

    names: tuple[str, ...]
    help: str
    topic: Topic
    least: int | None = None
    multiple: bool = False
    metavar: str = "N"
    share: bool = False
    choices: tuple[str, ...] = ()

    @property
    def parameter(self) -> str:
        """The parameter name identifying the flag's value."""
        return self.names[-1].partition("/")[0].lstrip("-").replace("-", "_")


@dataclass(frozen=True, slots=True)
class Need:
    """Data needed by certain modes only; the first question using such a mode triggers
    building.

    The need names the data, the setting making every index run build the data, and the message
    shown at the first question."""

    what: Literal["contexts", "tree"]
    setting: str
    message: str


@dataclass(frozen=True, slots=True)
class DocsRow:
    """A mode's row on the documentation page: suitable questions, data read, number of model
    calls."""

    questions: str
    reads: str
    calls: str


@dataclass(frozen=True, slots=True)
class Mode:
    """A mode of retrieval.

    ``section`` is the section of the settings that is its own, ``beneath`` are further ones that
    its answers depend on. ``method`` names who retrieves, where not the embedder does.
    ``concepts`` says that the question's concepts are found first, ``keywords`` that its keywords
    are. ``reads_text``: chunks are retrieved as they stand, whatever was extracted from them.
    ``reports``: it reads ``only`` the reports, or reports ``beside`` what these rest on. ``flags``
    are those that it has a use for, each with the setting that it overrides. ``auto`` takes it for
    questions of the forms ``answers``. ``stepwise``: what a question describes is asked first,
    with a model only where the section has ``steps`` and it says so.

    ``retriever`` makes the retriever of a mode of another package, from the settings and
    ``tgraph.retrieve.base.Services``; ``tgraph.retrieve.search.registry`` makes those of tgraph's
    own modes. ``cut_offs`` names a function (``module:function``) that yields, for why-not, what
    the mode leaves out by other than a rank (``tgraph.retrieve.orders.ModeCutOffs``); empty where
    the mode leaves things out by rank alone.
    ``selecting`` says how candidates become the selection, by the section of the settings.
    ``settings`` is the class of the section, in a mode of an extension.
    """

    name: str
    row: DocsRow
    section: str = ""
    beneath: tuple[str, ...] = ()
    pipeline: Pipeline = "two stages"
    retriever: Callable[[Any, Any], Any] | None = None
    selecting: Callable[[Any], SelectionRule] | None = None
    method: str = ""
    concepts: bool = False
    keywords: KeywordNeed | None = None
    need: Need | None = None
    reads_text: bool = False
    reports: Literal["only", "beside"] | None = None
    flags: Mapping[Flag, str] = field(default_factory=dict)
    answers: tuple[Form, ...] = ()
    stepwise: bool = False
    cut_offs: str = ""
    settings: type[Section] | None = None

    @property
    def main_section(self) -> str:
        """The settings section limiting the selection size."""
        return self.section or self.beneath[0]


def load_entry(entry: str) -> Any:
    """What an entry of a mode names (``module:function``)."""
    module, _, name = entry.partition(":")
    return getattr(import_module(module), name)
