"""Text from documents and models, made safe for a terminal."""

from __future__ import annotations

import re

# C0 without tab and line feed, DEL, C1, the bidirectional controls, and lone surrogates.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def safe(text: str) -> str:
    """The text with every character that could command a terminal shown as its escape."""
    return UNSAFE.sub(_escape, text.replace("\r\n", "\n"))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def one_line(text: str, most: int | None = None) -> str:
    """The text on one line, harmless, and cut with an ellipsis where it is too long."""
    flat = safe(" ".join(text.split()))
    if most is not None and len(flat) > most:
        return flat[: max(most - 1, 0)].rstrip() + "…"
    return flat
