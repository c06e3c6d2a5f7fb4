"""What a session says of how it was asked, so that it can be asked again: settings and history."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from tgraph.errors import UsageError
from tgraph.model import Turn
from tgraph.models.base import canonical_json
from tgraph.retrieve.base import Question
from tgraph.retrieve.filters import Filters
from tgraph.retrieve.modes.registry import mode_named
from tgraph.settings import Settings

HISTORY = "history"
"""The parameter that holds the turns before the question, as JSON."""

STANDS_ALONE = "stands-alone"
"""The parameter that says of a question that it needs none of the turns before it."""

COUNT = "count"
"""The parameter that says how many questions were to be proposed."""

ONLY = "only"
"""The parameter that says what was asked for in place of an answer."""

WRITER = "writer"
"""The parameter that names the model that would have written the answer; none: no model."""

_PARTLY: Mapping[str, Sequence[str]] = {
    "chat": ("temperature", "seed", "max_tokens"),
    "auto": (
        "by_model",
        "one",
        "linked",
        "compared",
        "listed",
        "whole",
        "long",
        "long_chunks",
        "sparse",
        "sparse_edges",
    ),
    "rerank": ("provider", "pool", "min_score"),
}
"""Of these sections only some settings count; others tell of a server, or are secret."""


def recorded(
    settings: Settings,
    mode: str,
    history: Sequence[Turn] = (),
    count: int | None = None,
    *,
    chosen: bool = False,
) -> dict[str, str | int | float | bool]:
    """The settings that an answer in this mode depends on, by name, and the turns before it.

    A setting is named as in its section; where two sections have one of that name, the mode's own
    has the plain name and the others are named with their section. Empty values are left out.
    ``chosen`` says that the mode was chosen by the settings ``auto``, which then count too.
    """
    found: dict[str, str | int | float | bool] = {}
    for section, field, name in _named(settings, mode, chosen):
        value = getattr(getattr(settings, section), field)
        if value not in (None, "", ()):
            listed = isinstance(value, tuple)
            found[name] = json.dumps(list(value), ensure_ascii=False) if listed else value
    if history:
        found[HISTORY] = canonical_json([[turn.question, turn.answer] for turn in history])
    if count is not None:
        found[COUNT] = count
    return found


def restored(settings: Settings, mode: str, parameters: Mapping[str, str]) -> Settings:
    """``settings`` with those that ``recorded`` wrote down. ``UsageError`` where this version of
    tgraph does not take them."""
    sections: dict[str, dict[str, Any]] = {}
    for section, field, name in _named(settings, mode, was_chosen(parameters)):
        made = sections.setdefault(section, getattr(settings, section).model_dump())
        text = parameters.get(name)
        made[field] = _value(getattr(settings, section), field, text)
    try:
        parts = {
            name: type(getattr(settings, name)).model_validate(values)
            for name, values in sections.items()
        }
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise UsageError(
            f"The session was asked with a value of {where} that this version does not take.",
            "Replay it with the version of tgraph that recorded it.",
        ) from error
    return settings.model_copy(update=parts)


def was_chosen(parameters: Mapping[str, str]) -> bool:
    """Whether the mode was chosen for the question."""
    return "auto.one" in parameters


def history_of(parameters: Mapping[str, str]) -> tuple[Turn, ...]:
    """The turns that ``recorded`` wrote down."""
    return tuple(Turn(*turn) for turn in json.loads(parameters.get(HISTORY) or "[]"))


def asked_of(text: str, parameters: Mapping[str, str]) -> Question:
    """The question of a session, with the turns before it."""
    return Question(text, history_of(parameters), stands_alone=STANDS_ALONE in parameters)


def filters_of(parameters: Mapping[str, str]) -> Filters:
    """The filters that ``Filters.parameters`` wrote down."""
    return Filters(
        tuple(json.loads(parameters.get("filter-document") or "[]")),
        parameters.get("filter-since"),
        parameters.get("filter-until"),
        tuple(json.loads(parameters.get("filter-type") or "[]")),
        tuple(json.loads(parameters.get("filter-language") or "[]")),
        parameters.get("filter-valid-at"),
    )


def _sections(mode: str, chosen: bool) -> list[str]:
    """The sections that a mode reads, its own at the end."""
    auto = ["auto"] if chosen else []
    named = ["chat", *auto, "graph", "answer"]
    found = mode_named(mode)
    own = (*found.beneath, found.section) if found else ()
    return [*named, *(section for section in own if section and section not in named)]


def _named(settings: Settings, mode: str, chosen: bool) -> Iterator[tuple[str, str, str]]:
    """Each setting that counts: its section, its field, and the name of the parameter."""
    sections = _sections(mode, chosen)
    fields = {
        name: _PARTLY.get(name) or list(type(getattr(settings, name)).model_fields)
        for name in sections
    }
    for index, section in enumerate(sections):
        later = {field for other in sections[index + 1 :] for field in fields[other]}
        for field in fields[section]:
            plain = field.replace("_", "-")
            qualified = section in _PARTLY or field in later
            yield section, field, f"{section}.{plain}" if qualified else plain


def _value(section: BaseModel, field: str, text: str | None) -> object:
    """The value of a parameter's text; of one that was left out, the empty one of its type."""
    current, declared = getattr(section, field), type(section).model_fields[field]
    if isinstance(current, tuple):
        return tuple(json.loads(text)) if text else ()
    if declared.annotation is str:
        return text or ""
    if text is None and current is not None:  # unset, or a setting that there was not yet
        return declared.default
    return text or None
