"""What a model thought aloud before its reply, told from the reply.

Servers that know a model's thoughts send them in a field of their own; others leave them in the
text, between ``<think>`` and ``</think>`` (DeepSeek, Qwen) or tags like it, or up to a ``</think>``
that nothing opened, where the chat template wrote the opening one (DeepSeek-R1's does).
"""

from __future__ import annotations

import re

_OPENINGS = ("<think>", "<thinking>", "<thought>", "<reasoning>", "[think]")
_OPENING = re.compile(r"\s*(?:<(think|thinking|thought|reasoning)>|\[(think)\])", re.IGNORECASE)
_ENDING = re.compile(r"</(?:think|thinking|thought|reasoning)>|\[/think\]", re.IGNORECASE)
_LONGEST_ENDING = len("</reasoning>")
_JSON = ("{", "[", "`")


class ThoughtFilter:
    """Tells thoughts from the reply while it comes in pieces.

    Nothing is given out while it may still be a thought: a text that opens with a tag from its end
    on, JSON at once, and prose when its end has come, for a tag may yet end a thought that nothing
    opened. A thought that is never ended is all there is. ``thought`` is what was thought so far.
    """

    def __init__(self) -> None:
        self.thought = ""
        self._held = ""
        self._ending: re.Pattern[str] | None = None
        self._told = False

    def feed(self, piece: str) -> str:
        """What of the reply is known by this piece."""
        while not self._told:
            searched = max(0, len(self._held) - _LONGEST_ENDING)
            self._held += piece
            if self._ending is None and not self._may_be_thought():
                return self._out() if self._told else ""
            ending = (self._ending or _ENDING).search(self._held, searched)
            if ending is None:
                return ""
            piece = self._after(ending)
        return piece

    def _may_be_thought(self) -> bool:
        """Whether it may be one that has begun; a text that can be none is told from here on."""
        text = self._held.lstrip()[: max(map(len, _OPENINGS))].lower()
        if opening := _OPENING.match(self._held):
            name = (opening[1] or opening[2]).lower()
            closed = rf"</{name}>" if opening[1] else r"\[/think\]"
            self._ending = re.compile(closed, re.IGNORECASE)
            self._held = self._held[opening.end() :]
            return True
        if not text or any(tag.startswith(text) for tag in _OPENINGS):
            return False
        self._told = text.startswith(_JSON)
        return not self._told

    def _after(self, ending: re.Match[str]) -> str:
        """What follows a thought, which may be another."""
        self.thought += self._held[: ending.start()].strip() + "\n"
        rest, self._held, self._ending = self._held[ending.end() :].lstrip(), "", None
        return rest

    def _out(self) -> str:
        out, self._held = self._held, ""
        return out

    def finish(self) -> str:
        """What of the reply was held back to its end."""
        if self._ending is not None:
            self.thought += self._out()
        self._told = True
        return self._out()


def without_thoughts(text: str) -> tuple[str, str]:
    """The reply that a whole text holds, and what was thought."""
    told = ThoughtFilter()
    reply = told.feed(text)
    return reply + told.finish(), told.thought
