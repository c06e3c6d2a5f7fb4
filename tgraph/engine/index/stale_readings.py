"""Documents whose stored text would be another if they were read today."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from tgraph import vocabulary as v
from tgraph.index.sources import latest_accession, text_value
from tgraph.ingest.files import media_type_of_suffix, reading_version
from tgraph.store.base import Store, select_rows, text_of


@dataclass(frozen=True, slots=True)
class StaleReading:
    """A standing document that an earlier version of tgraph read otherwise."""

    path: str
    document: str
    accession: str


def find_stale_readings(store: Store) -> list[StaleReading]:
    """Return standing documents with an earlier version of their format's reading, or read as
    another format than their names tell today, by path."""
    standing: defaultdict[tuple[str, str], list[StaleReading]] = defaultdict(list)
    for row in select_rows(store, "trace/documents"):
        document, path, media_type = (text_of(row[n]) for n in ("document", "path", "type"))
        accession = latest_accession(store, path) if row["ended"] is None else None
        if accession is not None:
            standing[document, media_type].append(StaleReading(path, document, accession[0]))
    stale = [
        reading
        for (document, media_type), readings in standing.items()
        if _is_stale(store, document, media_type, [reading.path for reading in readings])
        for reading in readings
    ]
    return sorted(stale, key=lambda reading: reading.path)


def _is_stale(store: Store, document: str, media_type: str, paths: list[str]) -> bool:
    version = text_value(store, document, v.tg("readingVersion"))
    if int(version or 1) < reading_version(media_type):
        return True
    if version or media_type == "text/markdown":  # a plain text may have been written in Markdown
        return False
    return all(media_type_of_suffix(p) not in ("", media_type) for p in paths)
