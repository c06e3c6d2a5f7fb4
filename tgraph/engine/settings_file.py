"""The file of a graph's settings, written for people: each with its default, commented out.

It is made from the settings themselves, so that it says what this version of tgraph knows.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from tgraph.errors import UsageError
from tgraph.resources import names, read_text
from tgraph.settings import FILE, Settings
from tgraph.store.files import disk_errors, write_atomic
from tgraph.store.folder import GraphFolder

PROMPTS = "prompts"
"""The folder beside the settings for prompts of one's own."""

README = "README.md"
_WIDTH = 96
_HEAD = """\
The settings of this graph. What is commented out shows the default: take the # away to set it.

The environment (TGRAPH_ with __ between levels, as in TGRAPH_CHAT__MODEL) and flags override what
stands here; `tgraph config show` tells every value and where it comes from. Keys belong into the
environment: OPENAI_API_KEY, or TGRAPH_CHAT__API_KEY."""

_README = """\
# Prompts of this graph

A file here takes the place of tgraph's prompt of the same name, once `tgraph.toml` has the line

    prompts = "prompts"

`tgraph init --prompts` copies tgraph's own here, to be edited; delete those that you leave as
they are, so that they follow tgraph's when it is upgraded. A prompt has a part `=== system` and a
part `=== user`; `{{name}}` stands for what the step fills in, and what lies between the lines
`{{#name}}` and `{{/name}}` is left out where that is empty. A name that the step doesn't know ends
the command with an error that lists those it knows.
"""


@dataclass(frozen=True, slots=True)
class WrittenFolder:
    """A graph's folder, the files that were written in it, and those that were there before, which
    stay as they are."""

    folder: Path
    written: tuple[Path, ...]
    kept: tuple[Path, ...]

    @property
    def prompts(self) -> Path:
        """The folder of the prompts."""
        return self.folder / PROMPTS

    @property
    def unnamed_prompts(self) -> bool:
        """Whether prompts were copied that the settings, which were there, may not name."""
        copied = any(path.parent == self.prompts and path.name != README for path in self.written)
        return copied and self.folder / FILE in self.kept


def init_graph(root: str | Path, *, prompts: bool = False) -> WrittenFolder:
    """Make the folder of a graph with its settings to fill in and a folder for prompts; with
    ``prompts`` tgraph's own are copied there, and the settings name that folder.

    Nothing that exists is overwritten. Raises ``NotAGraphError`` where the folder can't be one.
    """
    folder = GraphFolder.create(Path(root)).path
    contents = {folder / FILE: settings_file({"prompts": PROMPTS} if prompts else {})}
    contents[folder / PROMPTS / README] = _README
    if prompts:
        shipped = (name for name in names("prompts") if name.endswith(".md"))
        contents |= {folder / PROMPTS / name: read_text("prompts", name) for name in shipped}
    with disk_errors():
        (folder / PROMPTS).mkdir(exist_ok=True)
        written = tuple(path for path, text in contents.items() if _is_written(path, text))
    return WrittenFolder(folder, written, tuple(path for path in contents if path not in written))


def _is_written(path: Path, text: str) -> bool:
    """Write the file, unless there is something of its name, which is not touched."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


def write_settings(path: Path, values: Mapping[str, Any]) -> None:
    """Write a file of settings in which these, by their dotted names, are set.

    One that is there already is overwritten only where nothing was set in it, as `tgraph init`
    wrote it; otherwise ``UsageError``.
    """
    text = settings_file(values)
    if path.exists() and path.read_text("utf-8") != settings_file():
        raise UsageError(
            f"{path} is there already, and is left as it is.",
            "Set in it what is to be set, or move it away.",
        )
    with disk_errors():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text.encode())


def settings_file(values: Mapping[str, Any] | None = None) -> str:
    """The text of ``tgraph.toml``: every setting with its meaning and its default, commented out
    but for these ``values``, by their dotted names. ``UsageError`` for a name that isn't one."""
    given = dict(values or {})
    lines = [*_comment(_HEAD)]
    sections = []
    for name, field in Settings.model_fields.items():
        section = _section(field)
        if section is None:
            lines += _setting(name, field, given, name)
        else:
            sections.append((name, section))
    for name, section in sections:
        lines += ["", "", f"[{name}]", *_comment(" ".join((section.__doc__ or "").split()))]
        for key, field in section.model_fields.items():
            lines += _setting(key, field, given, f"{name}.{key}")
    if given:
        raise UsageError(f"{', '.join(sorted(given))}: no such setting.")
    return "\n".join(lines) + "\n"


def _section(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _setting(key: str, field: FieldInfo, given: dict[str, Any], name: str) -> Iterator[str]:
    yield ""
    if SecretStr in _options(field.annotation):
        variable = f"TGRAPH_{name.replace('.', '__').upper()}"
        yield from _comment(f"{key}: {field.description}; not here, but in {variable}")
        return
    yield from _comment(_meaning(field))
    if name in given:
        yield f"{key} = {_toml(given.pop(name))}"
    else:
        yield f"#{key} = {_toml(_example(field) if field.default is None else field.default)}"


def _meaning(field: FieldInfo) -> str:
    """What the setting is for, what it may be, and whether it is set."""
    text = field.description or ""
    choices = [json.dumps(choice) for choice in _choices(field.annotation)]
    if choices:
        text = f"{text} ({', '.join(choices)})"
    return f"{text} [unset]" if field.default is None else text


def _choices(kind: object) -> list[object]:
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [choice for part in _options(kind) for choice in _choices(part)]


def _options(kind: object) -> tuple[object, ...]:
    """What a type that is a union, or annotated, is made of."""
    origin = get_origin(kind)
    if origin is Annotated:
        return get_args(kind)[:1]
    return get_args(kind) if origin in (Union, types.UnionType) else ()


def _example(field: FieldInfo) -> object:
    """A value of the setting's kind, where it has no default."""
    if field.examples:
        return field.examples[0]
    if choices := _choices(field.annotation):
        return choices[0]
    kinds = _options(field.annotation)
    if bool in kinds:
        return False
    return 1 if int in kinds or float in kinds else "..."


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, int | float):
        return str(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n") if text else ():
        yield from (f"# {line}" for line in wrap(paragraph, _WIDTH))
        if not text.endswith(paragraph):
            yield "#"
