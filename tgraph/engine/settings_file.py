"""Settings files for graphs, readable by people: each setting with its default, commented out.

The file is generated from settings definitions, so that it matches this tgraph version."""

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

from tgraph.engine.effective_settings import display_value, flatten_settings
from tgraph.errors import UsageError
from tgraph.resources import list_names, read_text
from tgraph.settings import FILE, Settings, is_trusted_only, read_file
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
    """A graph folder with newly written files and unchanged existing files."""

    folder: Path
    written: tuple[Path, ...]
    kept: tuple[Path, ...]

    @property
    def prompts(self) -> Path:
        """The prompt folder."""
        return self.folder / PROMPTS

    @property
    def unnamed_prompts(self) -> bool:
        """Tell whether prompts were copied beside existing settings, possibly without a
        reference to the prompt folder."""
        copied = any(path.parent == self.prompts and path.name != README for path in self.written)
        return copied and self.folder / FILE in self.kept


def init_graph(root: str | Path, *, prompts: bool = False) -> WrittenFolder:
    """Create a graph folder with settings to fill in and a prompt folder.

    With ``prompts``, tgraph's own prompts are copied, and settings name their folder. Existing
    files are never overwritten. Raise ``NotAGraphError`` if the folder can't hold a graph."""
    folder = GraphFolder.create(Path(root)).path
    contents = {folder / FILE: settings_file({"prompts": PROMPTS} if prompts else {})}
    contents[folder / PROMPTS / README] = _README
    if prompts:
        shipped = (name for name in list_names("prompts") if name.endswith(".md"))
        contents |= {folder / PROMPTS / name: read_text("prompts", name) for name in shipped}
    with disk_errors():
        (folder / PROMPTS).mkdir(exist_ok=True)
        written = tuple(path for path, text in contents.items() if _is_written(path, text))
    return WrittenFolder(folder, written, tuple(path for path in contents if path not in written))


def _is_written(path: Path, text: str) -> bool:
    """Write a new file and return True, or leave an existing file unchanged and return False."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


def write_settings(path: Path, values: Mapping[str, Any]) -> None:
    """Write a settings file with values for dotted setting names.

    An existing file is overwritten only if unchanged since `tgraph init`; otherwise raise
    ``UsageError``."""
    text = settings_file(values)
    if path.exists() and path.read_text("utf-8") != settings_file():
        raise UsageError(
            f"{path} is there already, and is left as it is.",
            "Edit the settings in the existing file, or move the file away.",
        )
    with disk_errors():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text.encode())


def keep_harmless_settings(file: Path) -> dict[str, Any]:
    """Rewrite a received settings file without the settings that are believed of their owner
    alone (``is_trusted_only``), and return these by name, to be shown."""
    if not file.is_file():
        return {}
    try:
        values = dict(flatten_settings(read_file(file)))
    except UsageError:
        file.unlink()
        return {FILE: "can't be read"}
    withheld = {name: value for name, value in values.items() if is_trusted_only(name)}
    if withheld:
        kept = {name: value for name, value in values.items() if name not in withheld}
        write_atomic(file, settings_file(kept).encode())
    return {name: display_value(name, value) for name, value in withheld.items()}


def settings_file(values: Mapping[str, Any] | None = None) -> str:
    """Return ``tgraph.toml`` text: every setting with meaning and default, commented out except
    ``values``, by dotted name. Raise ``UsageError`` for unknown names."""
    remaining_values = dict(values or {})
    lines = [*_comment_lines(_HEAD)]
    sections = []
    for name, field in Settings.model_fields.items():
        section = _section_model(field)
        if section is None:
            lines += _setting_lines(name, field, remaining_values, name)
        else:
            sections.append((name, section))
    for name, section in sections:
        lines += ["", "", f"[{name}]", *_comment_lines(" ".join((section.__doc__ or "").split()))]
        for key, field in section.model_fields.items():
            lines += _setting_lines(key, field, remaining_values, f"{name}.{key}")
    if remaining_values:
        raise UsageError(f"{', '.join(sorted(remaining_values))}: no such setting.")
    return "\n".join(lines) + "\n"


def _section_model(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _setting_lines(key: str, field: FieldInfo, given: dict[str, Any], name: str) -> Iterator[str]:
    yield ""
    if SecretStr in _type_options(field.annotation):
        variable = f"TGRAPH_{name.replace('.', '__').upper()}"
        yield from _comment_lines(f"{key}: {field.description}; not here, but in {variable}")
        return
    yield from _comment_lines(_describe_setting(field))
    if name in given:
        yield f"{key} = {_format_toml(given.pop(name))}"
    else:
        value = _example_value(field) if field.default is None else field.default
        yield f"#{key} = {_format_toml(value)}"


def _describe_setting(field: FieldInfo) -> str:
    """Return a setting's description, with allowed values and an unset mark."""
    text = field.description or ""
    choices = [json.dumps(choice) for choice in _literal_choices(field.annotation)]
    if choices:
        text = f"{text} ({', '.join(choices)})"
    return f"{text} [unset]" if field.default is None else text


def _literal_choices(kind: object) -> list[object]:
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [choice for part in _type_options(kind) for choice in _literal_choices(part)]


def _type_options(kind: object) -> tuple[object, ...]:
    """Return component types of a union or annotated type."""
    origin = get_origin(kind)
    if origin is Annotated:
        return get_args(kind)[:1]
    return get_args(kind) if origin in (Union, types.UnionType) else ()


def _example_value(field: FieldInfo) -> object:
    """Return an example value for a setting without default."""
    if field.examples:
        return field.examples[0]
    if choices := _literal_choices(field.annotation):
        return choices[0]
    kinds = _type_options(field.annotation)
    if bool in kinds:
        return False
    return 1 if int in kinds or float in kinds else "..."


def _format_toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_format_toml, value))}]"
    if isinstance(value, int | float):
        return str(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment_lines(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n") if text else ():
        yield from (f"# {line}" for line in wrap(paragraph, _WIDTH))
        if not text.endswith(paragraph):
            yield "#"
