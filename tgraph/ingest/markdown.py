"""Markdown: unchanged text with headings and front matter fields."""

from __future__ import annotations

from tgraph.ingest.base import FileContent, FileLimits
from tgraph.ingest.blocks import report_whole
from tgraph.ingest.front_matter import front_matter, read_fields
from tgraph.ingest.markdown_segments import read_page
from tgraph.ingest.text import decode_text
from tgraph.model import Page


def read_markdown(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read Markdown as a single page of unchanged text, with headings and front matter fields."""
    text = decode_text(data, name, limits)
    front = front_matter(text)
    metadata = read_fields(front) if front else {}
    headings = read_page(text).headings
    title = metadata.pop("title", "") or (headings[0].text if headings else "")
    report = report_whole("Markdown", text)
    return FileContent((Page(None, text, headings),), title, metadata, report)
