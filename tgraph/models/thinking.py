"""Separation of a model's thoughts from its reply.

Servers that recognise thoughts send thoughts in a separate field; others leave thoughts in the
text, between ``<think>`` and ``</think>`` (DeepSeek, Qwen) or similar tags, or up to a
``</think>`` without opening tag, where the chat template wrote the opening tag (as
DeepSeek-R1's template does). The ending of an unopened thought has its line to itself, or JSON
follows; every other ending is quoted by the reply."""

from __future__ import annotations

import re

_OPENINGS = ("<think>", "<thinking>", "<thought>", "<reasoning>", "[think]")
_OPENING = re.compile(r"\s*(?:<(think|thinking|thought|reasoning)>|\[(think)\])", re.IGNORECASE)
_TAG = r"(?:</(?:think|thinking|thought|reasoning)>|\[/think\])"
_UNOPENED_ENDING = re.compile(
    rf"^[ \t]*{_TAG}[ \t]*(?=\r?\n)|{_TAG}(?=\s*[\[{{`])", re.IGNORECASE | re.MULTILINE
)
_LONGEST_ENDING = len("</reasoning>")
_LAST_ENDING = re.compile(rf"^[ \t]*{_TAG}\s*\Z", re.IGNORECASE | re.MULTILINE)
_JSON = ("{", "[", "`")


class ThoughtFilter:
    """A filter separating thoughts from a reply arriving in pieces.

    Text is held back while possibly a thought: text opening with a tag until the tag ends,
    prose until the end of the text, since a tag may still end an unopened thought; JSON passes
    at once. A tag inside double quotes or backticks ends nothing. An unfinished thought is all
    there is. ``thought`` contains the thoughts so far."""

    def __init__(self) -> None:
        self.thought = ""
        self._held = ""
        self._ending: re.Pattern[str] | None = None
        self._told = False

    def feed(self, piece: str) -> str:
        """Return reply text made certain by the piece."""
        while not self._told:
            self._held += piece
            if self._ending is None and not self._may_be_thought():
                return self._release_held() if self._told else ""
            ending = self._find_ending(len(self._held) - len(piece) - _LONGEST_ENDING)
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

    def _find_ending(self, searched: int) -> re.Match[str] | None:
        """Return the ending of the thought; no ending begins before the position ``searched``."""
        if self._ending:
            return self._ending.search(self._held, max(0, searched))
        if "</" not in self._held and "[/" not in self._held:
            return None
        endings = _UNOPENED_ENDING.finditer(self._held)
        return next((m for m in endings if not _is_quoted(self._held, m.start())), None)

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
        last = _LAST_ENDING.search(self._held)
        if self._ending is not None:
            self.thought += self._release_held()
        elif last and not self._told:
            self._held = self._end_thought(last)
        self._told = True
        return self._release_held()


def _is_quoted(text: str, position: int) -> bool:
    """Return whether a quotation opened before the position on its line."""
    before = text[text.rfind("\n", 0, position) + 1 : position].replace('\\"', "")
    return before.count('"') % 2 == 1 or before.count("`") % 2 == 1


def without_thoughts(text: str) -> tuple[str, str]:
    """Return a complete text's reply, plus the separated thoughts."""
    thought_filter = ThoughtFilter()
    reply = thought_filter.feed(text)
    return reply + thought_filter.finish(), thought_filter.thought
