"""Hooks of the documentation site, which ``mkdocs.yml`` names."""

from __future__ import annotations

import re

_MARKED_FENCE = re.compile(r"^(\s*```\w+) (?:figure|terminal)$", re.MULTILINE)


def on_page_markdown(markdown: str, **page: object) -> str:
    """Return the Markdown of a page without the marks behind the languages of code blocks.

    Tests read the marks; Python-Markdown takes a fence with a mark for a paragraph."""
    return _MARKED_FENCE.sub(r"\1", markdown)
