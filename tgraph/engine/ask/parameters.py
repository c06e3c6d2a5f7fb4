"""Session parameters needed to repeat a question: settings and history."""

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

WRITTEN = "written-query"
"""The parameter that holds the query that a person wrote in place of asking in words."""

EDITED = "edited-query"
"""The parameter that names the query of an earlier session that the written query was made from."""

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
        "computed",
    ),
    "rerank": ("provider", "pool", "min_score"),
}
"""Of these sections only some settings count; others tell of a server, or are secret."""


def record_settings(
    settings: Settings,
    mode: str,
    history: Sequence[Turn] = (),
    count: int | None = None,
    *,
    chosen: bool = False,
) -> dict[str, str | int | float | bool]:
    """Return, by name, the settings affecting answers in this mode, plus earlier turns.

    A setting is named as in its section; where two sections share a name, the mode's own
    setting has the plain name and the others are named with their section. Empty values are
    left out. ``chosen`` says that the mode was chosen by the ``auto`` settings, which then
    count too."""
    parameters: dict[str, str | int | float | bool] = {}
    for section, field, name in _name_parameters(settings, mode, chosen):
        value = getattr(getattr(settings, section), field)
        if value not in (None, "", ()):
            listed = isinstance(value, tuple)
            parameters[name] = json.dumps(list(value), ensure_ascii=False) if listed else value
    if history:
        parameters[HISTORY] = canonical_json([[turn.question, turn.answer] for turn in history])
    if count is not None:
        parameters[COUNT] = count
    return parameters


def restore_settings(settings: Settings, mode: str, parameters: Mapping[str, str]) -> Settings:
    """Return ``settings`` overridden by parameters written by ``record_settings``.

    Raises ``UsageError`` if this version of tgraph rejects the parameters."""
    sections: dict[str, dict[str, Any]] = {}
    for section, field, name in _name_parameters(settings, mode, was_chosen(parameters)):
        section_values = sections.setdefault(section, getattr(settings, section).model_dump())
        text = parameters.get(name)
        section_values[field] = _parse_value(getattr(settings, section), field, text)
    try:
        parts = {
            name: type(getattr(settings, name)).model_validate(values)
            for name, values in sections.items()
        }
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise UsageError(
            f"The session has a value of {where} that this version does not accept.",
            "Replay the session with the version of tgraph that recorded the session.",
        ) from error
    return settings.model_copy(update=parts)


def was_chosen(parameters: Mapping[str, str]) -> bool:
    """Return whether the mode was chosen automatically for the question."""
    return "auto.one" in parameters


def history_of(parameters: Mapping[str, str]) -> tuple[Turn, ...]:
    """Return earlier turns written by ``record_settings``."""
    return tuple(Turn(*turn) for turn in json.loads(parameters.get(HISTORY) or "[]"))


def asked_of(text: str, parameters: Mapping[str, str]) -> Question:
    """Return a session's question with its earlier turns."""
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


def _list_sections(mode: str, chosen: bool) -> list[str]:
    """Return setting sections read by a mode, the mode's own section last."""
    auto = ["auto"] if chosen else []
    shared_sections = ["chat", *auto, "graph", "answer"]
    mode_definition = mode_named(mode)
    mode_sections = (*mode_definition.beneath, mode_definition.section) if mode_definition else ()
    return [
        *shared_sections,
        *(section for section in mode_sections if section and section not in shared_sections),
    ]


def _name_parameters(settings: Settings, mode: str, chosen: bool) -> Iterator[tuple[str, str, str]]:
    """Yield section, field and parameter name of each relevant setting."""
    sections = _list_sections(mode, chosen)
    fields = {
        name: _PARTLY.get(name) or list(type(getattr(settings, name)).model_fields)
        for name in sections
    }
    for index, section in enumerate(sections):
        later = {
            field for later_section in sections[index + 1 :] for field in fields[later_section]
        }
        for field in fields[section]:
            plain = field.replace("_", "-")
            qualified = section in _PARTLY or field in later
            yield section, field, f"{section}.{plain}" if qualified else plain


def _parse_value(section: BaseModel, field: str, text: str | None) -> object:
    """Parse a parameter's text; an omitted parameter gives the empty value of its type."""
    current, declared = getattr(section, field), type(section).model_fields[field]
    if isinstance(current, tuple):
        return tuple(json.loads(text)) if text else ()
    if declared.annotation is str:
        return text or ""
    if text is None and current is not None:  # unset, or a setting that there was not yet
        return declared.default
    return text or None
