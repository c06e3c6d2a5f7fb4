"""Documents whose stored text would be another if they were read today."""

from __future__ import annotations

from dataclasses import dataclass

from tgraph import vocabulary as v
from tgraph.index.sources import latest_accession, text_value
from tgraph.ingest.files import reading_version
from tgraph.store.base import Store, select_rows, text_of


@dataclass(frozen=True, slots=True)
class StaleReading:
    """A standing document that an earlier version of tgraph read otherwise."""

    path: str
    document: str
    accession: str


def find_stale_readings(store: Store) -> list[StaleReading]:
    """Return standing documents with an earlier version of their format's reading, by path."""
    stale = []
    for row in select_rows(store, "trace/documents"):
        document, path, media_type = (text_of(row[n]) for n in ("document", "path", "type"))
        recorded = int(text_value(store, document, v.tg("readingVersion")) or 1)
        standing = latest_accession(store, path) if row["ended"] is None else None
        if standing is not None and recorded < reading_version(media_type):
            stale.append(StaleReading(path, document, standing[0]))
    return sorted(stale, key=lambda reading: reading.path)
