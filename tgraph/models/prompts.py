"""Prompts: files that people can read and replace, filled in so that data stays data.

A prompt file has a part ``=== system`` and a part ``=== user``. ``{{name}}`` is replaced by plain
text; data stands in blocks between the lines ``<<<NAME`` and ``NAME>>>``, and no data can contain
such a line. What stands between the lines ``{{#name}}`` and ``{{/name}}`` is left out where that
text is empty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypedDict, TypeVar, Unpack

from pydantic import BaseModel

from tgraph.errors import ModelError, UsageError
from tgraph.model import Agent, Prompt
from tgraph.models.base import CallSink, ChatModel, ChatRequest
from tgraph.models.structured_output import Forgetful, Structured, ask_structured, strict_schema
from tgraph.resources import load_tables, read_text
from tgraph.vocabulary import digest_parts

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_SECTION = re.compile(r"^\{\{#(\w+)\}\}\n(.*?)^\{\{/\1\}\}\n", re.MULTILINE | re.DOTALL)
_PART = re.compile(r"^=== (system|user)\s*$", re.MULTILINE)
_FENCE = re.compile(r"<<<|>>>")
_DEFUSED = {"<<<": "‹‹‹", ">>>": "›››"}


@dataclass(frozen=True, slots=True)
class PromptFiles:
    """Prompt sources: the user's folder, taking precedence over tgraph's prompts, and the
    writing language.

    An empty language means the language of the question or of the texts."""

    folder: Path | None = None
    language: str = ""


Prompts = Path | PromptFiles | None
"""A folder alone stands for prompts as they are."""

WRITING = frozenset(
    {
        *("synthesise_answer", "answer_alone", "answer_step", "map_points", "suggest_questions"),
        *("drift_primer", "drift_action"),
        *("community_report", "summarise_descriptions", "summarise_cluster"),
    }
)
"""Prompts that have something written for a reader."""


def load_prompt(name: str, prompts: Prompts = None) -> Prompt:
    """Load a prompt by name: user file preferred, reply language appended if set."""
    prompt_files = prompts if isinstance(prompts, PromptFiles) else PromptFiles(prompts)
    prompt = _read_prompt(name, prompt_files.folder)
    if not prompt_files.language or name not in WRITING:
        return prompt
    instruction = read_text("prompts", "parts/reply_language.txt")
    instruction = instruction.format(language=language_name(prompt_files.language)).strip()
    if instruction in prompt.text:  # as one that was recorded has it
        return prompt
    system, user, remainder = re.split(r"^(=== user)", prompt.text, maxsplit=1, flags=re.MULTILINE)
    return _build_prompt(name, f"{system.rstrip()}\n\n{instruction}\n{user}{remainder}")


def language_name(language: str) -> str:
    """Return the English name of a language tag; other text unchanged."""
    names: dict[str, str] = load_tables("languages")["names"]
    name = names.get(language.lower().partition("-")[0])
    return name or language


def _read_prompt(name: str, folder: Path | None) -> Prompt:
    file = f"{name}.md"
    user_file = folder / file if folder is not None else None
    text = (
        user_file.read_text("utf-8")
        if user_file and user_file.is_file()
        else read_text("prompts", file)
    )
    if _PART.findall(text) != ["system", "user"]:
        raise UsageError(
            f"The prompt {user_file or file} needs a part `=== system` and then `=== user`."
        )
    return _build_prompt(name, text)


def _build_prompt(name: str, text: str) -> Prompt:
    return Prompt(name, text, sha256(text.encode()).hexdigest())


def with_addition(prompt: Prompt, addition: Prompt) -> Prompt:
    """Return the prompt with another prompt's instructions appended and data prepended, keeping
    the name."""
    _, _, system, _, user = _PART.split(prompt.text)
    _, _, instructions, _, data = _PART.split(addition.text)
    text = f"=== system{system.rstrip()}\n{instructions.rstrip()}\n=== user{data.rstrip()}\n{user}"
    return Prompt(prompt.name, text, sha256(text.encode()).hexdigest())


def find_placeholders(prompt: Prompt) -> set[str]:
    sections = (match[1] for match in _SECTION.finditer(prompt.text))
    return {*_PLACEHOLDER.findall(prompt.text), *sections}


def fill_messages(prompt: Prompt, values: Mapping[str, str]) -> list[dict[str, str]]:
    """Return chat messages of the prompt with all placeholders filled.

    Raises ``UsageError`` if the prompt requests values missing in the step."""
    unknown = find_placeholders(prompt) - set(values)
    if unknown:
        raise UsageError(
            f"The prompt {prompt.name} uses {', '.join(sorted(unknown))}, which that step has not.",
            f"It has: {', '.join(sorted(values))}.",
        )
    text = _SECTION.sub(lambda m: m[2] if values[m[1]].strip() else "", prompt.text)
    _, _, system, _, user = _PART.split(text)
    safe = {name: _FENCE.sub(lambda m: _DEFUSED[m[0]], text) for name, text in values.items()}
    return [
        {"role": role, "content": _PLACEHOLDER.sub(lambda m: safe[m.group(1)], part).strip()}
        for role, part in (("system", system), ("user", user))
    ]


T = TypeVar("T", bound=BaseModel)


class Options(TypedDict, total=False):
    """Model options; by default zero temperature, without seed or limit."""

    temperature: float
    seed: int | None
    max_tokens: int | None


class Prompted:
    """A model with prompt and options; ``limits`` are sizes influencing the reply."""

    def __init__(
        self,
        model: ChatModel,
        prompt: Prompt,
        limits: Sequence[int],
        **options: Unpack[Options],
    ) -> None:
        self._model = model
        self._prompt = prompt
        self._limits = tuple(limits)
        temperature = options.get("temperature", 0.0)
        self._options = (temperature, options.get("seed"), options.get("max_tokens"))

    @property
    def agent(self) -> Agent:
        return self._model.agent

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (self._prompt,)

    @property
    def key(self) -> str:
        """Digest of everything influencing a reply, except the content shown."""
        options = map(str, (*self._limits, *self._options))
        return digest_parts(self.agent.iri, self._prompt.sha256, *options)

    def _request(self, values: Mapping[str, str], schema: type[BaseModel]) -> ChatRequest:
        temperature, seed, max_tokens = self._options
        return ChatRequest(
            self._prompt,
            fill_messages(self._prompt, values),
            strict_schema(schema),
            max_tokens=max_tokens,
            temperature=temperature,
            seed=seed,
        )

    def _ask(self, request: ChatRequest, schema: type[T], sink: CallSink) -> Structured[T]:
        return ask_structured(self._model, request, schema, sink)

    def _refuse(self, request: ChatRequest, why: str) -> ModelError:
        """Forget an unusable reply and return the corresponding error."""
        if isinstance(self._model, Forgetful):
            self._model.forget(request)
        return ModelError(
            f"The reply of {self.agent.name} to the step {self._prompt.name} is {why}.",
            "A larger model does better.",
        )
