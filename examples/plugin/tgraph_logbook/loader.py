"""A loader: logbooks, with an entry on each line (``1914-05-06 | The Fram sailed.``)."""

from __future__ import annotations

from tgraph.ingest.base import FileContent, FileLimits, Loader
from tgraph.ingest.text import decode_text
from tgraph.model import Page


def read_logbook(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Return a page for each day; the text of a page is what was entered."""
    days: dict[str, list[str]] = {}
    for line in decode_text(data, name, limits).splitlines():
        day, separator, entry = line.partition("|")
        if separator:
            days.setdefault(day.strip(), []).append(entry.strip())
    texts = ["".join(f"{entry}\n" for entry in days[day]) for day in sorted(days)]
    pages = tuple(Page(number, text) for number, text in enumerate(texts, 1))
    return FileContent(pages, title=f"Logbook of {min(days, default='no day')}")


LOGBOOKS = Loader((".logbook",), read_logbook)
