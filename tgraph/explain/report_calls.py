"""What a report shows of the prompts: their own texts, and what each call was asked with them.

Prompts hold whole chunks, so that those of one question can be half a megabyte. A report has room
for the beginning and the end of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tgraph.explain.traced import Trace, TracedCall, TracedPrompt

MOST_ASKED = 3000
"""Characters of what a call was asked that a report shows."""
MOST_OF_ALL = 120_000
"""Characters that it shows of all calls together."""
MOST_OF_PROMPT = 20_000
"""Characters of a prompt's own text that it shows."""

_GONE = {
    "erased": "It was erased with the text of a document.",
    "missing": "The graph does not keep it any more.",
}

Request = Callable[[TracedCall], tuple[str, str]]
"""What a call was asked, and whether that is kept, erased or missing."""


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text, or its beginning and end with ``left_out`` characters between them; ``gone`` says why
    there is none, and is empty where there is one."""

    before: str
    left_out: int = 0
    after: str = ""
    gone: str = ""


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call with what it was asked, None where that is no text."""

    call: TracedCall
    asked: ShownText | None


@dataclass(frozen=True, slots=True)
class ShownPrompt:
    """A prompt with its text."""

    prompt: TracedPrompt
    text: ShownText


def shown_prompts(trace: Trace) -> list[ShownPrompt]:
    """The prompts of the session by name."""
    return [
        ShownPrompt(prompt, _shown(prompt.text, prompt.state, MOST_OF_PROMPT))
        for prompt in trace.prompts
    ]


def shown_calls(trace: Trace, request: Request) -> list[ShownCall]:
    """The calls in their order; those for which there is no room any more show nothing."""
    room, found = MOST_OF_ALL, []
    for call in trace.calls:
        asked = None
        if call.prompt:
            text, state = request(call)
            asked = _shown(text, state, min(MOST_ASKED, room))
            room -= len(asked.before) + len(asked.after)
        found.append(ShownCall(call, asked))
    return found


def _shown(text: str, state: str, most: int) -> ShownText:
    if state != "kept":
        return ShownText("", gone=_GONE[state])
    if len(text) <= most:
        return ShownText(text)
    head = most * 2 // 3
    tail = len(text) - (most - head)
    return ShownText(text[:head], tail - head, text[tail:])
