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

Pipeline = Literal["two stages", "map-reduce", "follow-ups", "alone"]
"""How an answer comes about; ``tgraph.engine.ask.method_factory`` has the method of each."""

Form = Literal["one", "linked", "compared", "listed", "whole"]
"""What form a question has: it asks for one thing, for what is found through something else, for a
comparison, for a list or a count, or for the documents as a whole."""

Topic = Literal["start", "keywords", "limits", "reports"]
"""What a flag is about: where retrieval starts, from what, how much there is, which reports."""

Level = Literal["low", "high"]
"""Keywords for what a question names (low), and for its themes."""


class Section(BaseModel):
    """A section of the settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def admit_added(registry: Registry) -> WrapValidator:
    """Return a validator that admits the names of a registry beside the names of the core."""

    def validate(value: Any, validate_own: ValidatorFunctionWrapHandler) -> Any:
        try:
            return validate_own(value)
        except ValidationError:
            if value in registry.names():
                return value
            raise

    return WrapValidator(validate)


@dataclass(frozen=True, slots=True)
class Judged:
    """Edges are judged one by one: by the model, or by the embedded selector. ``tokens`` are those
    of a whole prompt."""

    tokens: int


@dataclass(frozen=True, slots=True)
class Shared:
    """Candidates are taken in their order; each group of kinds has a share of the ``tokens``."""

    tokens: int
    shares: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Capped:
    """Candidates are taken in their order, while the ``tokens`` and their kind's last."""

    tokens: int
    caps: Mapping[str, int] = field(default_factory=dict)


Selecting = Judged | Shared | Capped


@dataclass(frozen=True, slots=True)
class KeywordNeed:
    """A mode that starts from keywords: of which levels, and which the settings give."""

    levels: tuple[Level, ...]
    given: Callable[[Any], tuple[Sequence[str], Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag of ``ask`` that only some modes have a use for.

    ``least`` makes it a number from there on, ``share`` one from 0 to 1, ``choices`` one of
    these; ``multiple`` says that it may be repeated. With none of them it switches something on or
    off. The help tells flags by their ``topic``.
    """

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
        """The name by which its value is known."""
        return self.names[-1].partition("/")[0].lstrip("-").replace("-", "_")


@dataclass(frozen=True, slots=True)
class Need:
    """Something that only some modes read, so that their first question has it built: which, the
    setting that has every index run build it, and what to say of it at that question."""

    what: Literal["contexts", "tree"]
    setting: str
    message: str


@dataclass(frozen=True, slots=True)
class DocsRow:
    """What the page on modes says of one: for which questions it is, what it reads, and how many
    calls of a model it takes."""

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
    selecting: Callable[[Any], Selecting] | None = None
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
        """The section of the settings that says how much is selected."""
        return self.section or self.beneath[0]


def load(entry: str) -> Any:
    """What an entry of a mode names (``module:function``)."""
    module, _, name = entry.partition(":")
    return getattr(import_module(module), name)
