"""Separation of a model's thoughts from its reply.

Servers that recognise thoughts send thoughts in a separate field; others leave thoughts in the
text, between ``<think>`` and ``</think>`` (DeepSeek, Qwen) or similar tags, or up to a
``</think>`` without opening tag, where the chat template wrote the opening tag (as
DeepSeek-R1's template does)."""

from __future__ import annotations

import re

_OPENINGS = ("<think>", "<thinking>", "<thought>", "<reasoning>", "[think]")
_OPENING = re.compile(r"\s*(?:<(think|thinking|thought|reasoning)>|\[(think)\])", re.IGNORECASE)
_ENDING = re.compile(r"</(?:think|thinking|thought|reasoning)>|\[/think\]", re.IGNORECASE)
_LONGEST_ENDING = len("</reasoning>")
_JSON = ("{", "[", "`")


class ThoughtFilter:
    """A filter separating thoughts from a reply arriving in pieces.

    Text is held back while possibly a thought: text opening with a tag until the tag ends,
    prose until the end of the text, since a tag may still end an unopened thought; JSON passes
    at once. An unfinished thought is all there is. ``thought`` contains the thoughts so far."""

    def __init__(self) -> None:
        self.thought = ""
        self._held = ""
        self._ending: re.Pattern[str] | None = None
        self._told = False

    def feed(self, piece: str) -> str:
        """Return reply text made certain by the piece."""
        while not self._told:
            searched = max(0, len(self._held) - _LONGEST_ENDING)
            self._held += piece
            if self._ending is None and not self._may_be_thought():
                return self._release_held() if self._told else ""
            ending = (self._ending or _ENDING).search(self._held, searched)
            if ending is None:
                return ""
            piece = self._end_thought(ending)
        return piece

    def _may_be_thought(self) -> bool:
        """Return whether held text may be an unfinished thought; other text is released from
        now on."""
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

    def _end_thought(self, ending: re.Match[str]) -> str:
        """Return text following a finished thought, possibly another thought."""
        self.thought += self._held[: ending.start()].strip() + "\n"
        remainder, self._held, self._ending = self._held[ending.end() :].lstrip(), "", None
        return remainder

    def _release_held(self) -> str:
        out, self._held = self._held, ""
        return out

    def finish(self) -> str:
        """Return reply text held back until the end."""
        if self._ending is not None:
            self.thought += self._release_held()
        self._told = True
        return self._release_held()


def without_thoughts(text: str) -> tuple[str, str]:
    """Return a complete text's reply, plus the separated thoughts."""
    thought_filter = ThoughtFilter()
    reply = thought_filter.feed(text)
    return reply + thought_filter.finish(), thought_filter.thought
