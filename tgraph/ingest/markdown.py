"""Markdown: text that stays as it is, with its headings and what its front matter says."""

from __future__ import annotations

from tgraph.ingest.base import FileContent, FileLimits
from tgraph.ingest.front_matter import described, front_matter
from tgraph.ingest.markdown_segments import read_page
from tgraph.ingest.text import decode
from tgraph.model import Page


def read_markdown(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Markdown as one page of unchanged text, with its headings and its front matter's fields."""
    text = decode(data, name, limits)
    front = front_matter(text)
    metadata = described(front) if front else {}
    headings = read_page(text).headings
    title = metadata.pop("title", "") or (headings[0].text if headings else "")
    return FileContent((Page(None, text, headings),), title, metadata)
