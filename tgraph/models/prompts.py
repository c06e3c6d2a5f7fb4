"""Prompts: files that people can read and replace, filled in so that data stays data.

A prompt file has a part ``=== system`` and a part ``=== user``. ``{{name}}`` is replaced by plain
text; data stands in blocks between the lines ``<<<NAME`` and ``NAME>>>``, and no data can contain
such a line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from tgraph.errors import UsageError
from tgraph.model import Prompt
from tgraph.resources import read_text

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_PART = re.compile(r"^=== (system|user)\s*$", re.MULTILINE)
_FENCE = re.compile(r"<<<|>>>")


def load_prompt(name: str, folder: Path | None = None) -> Prompt:
    """The prompt of that name: the user's file in ``folder`` if there is one, else tgraph's."""
    file = f"{name}.md"
    own = folder / file if folder is not None else None
    text = own.read_text("utf-8") if own and own.is_file() else read_text("prompts", file)
    if _PART.findall(text) != ["system", "user"]:
        raise UsageError(f"The prompt {own or file} needs a part `=== system` and then `=== user`.")
    return Prompt(name, text, sha256(text.encode()).hexdigest())


def placeholders(prompt: Prompt) -> set[str]:
    return set(_PLACEHOLDER.findall(prompt.text))


def messages(prompt: Prompt, values: Mapping[str, str]) -> list[dict[str, str]]:
    """The chat messages of the prompt with every placeholder filled in.

    ``UsageError`` where the prompt asks for something that the step doesn't have.
    """
    unknown = placeholders(prompt) - set(values)
    if unknown:
        raise UsageError(
            f"The prompt {prompt.name} uses {', '.join(sorted(unknown))}, which that step has not.",
            f"It has: {', '.join(sorted(values))}.",
        )
    _, _, system, _, user = _PART.split(prompt.text)
    safe = {name: _FENCE.sub(_defuse, value) for name, value in values.items()}
    return [
        {"role": role, "content": _PLACEHOLDER.sub(lambda m: safe[m.group(1)], part).strip()}
        for role, part in (("system", system), ("user", user))
    ]


def _defuse(match: re.Match[str]) -> str:
    return "‹‹‹" if match.group() == "<<<" else "›››"
