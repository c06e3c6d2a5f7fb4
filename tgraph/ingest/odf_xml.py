"""The XML of files in the OpenDocument format: parts, metadata, attributes."""

from __future__ import annotations

import zipfile

from lxml import etree

from tgraph.ingest.archive import read_part, unreadable_error
from tgraph.ingest.base import error_reason, storable
from tgraph.rendering import collapse_whitespace

READER = f"lxml {etree.__version__}"
MOST_REPEATED = 1_000
"""Repetitions of a row or cell that are read; files repeat empty ones a million times."""
_METADATA = {
    "initial-creator": "author",
    "creator": "author",
    "creation-date": "date",
    "date": "date",
    "language": "language",
    "description": "description",
}


def parse_part(archive: zipfile.ZipFile, path: str, name: str, kind: str) -> etree._Element:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        return etree.fromstring(read_part(archive, path, name, kind), parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise unreadable_error(name, kind, error_reason(error)) from None


def read_metadata(archive: zipfile.ZipFile, name: str, kind: str) -> tuple[str, dict[str, str]]:
    title = ""
    metadata: dict[str, str] = {}
    if "meta.xml" not in archive.namelist():
        return title, metadata
    for element in parse_part(archive, "meta.xml", name, kind).iter():
        text = collapse_whitespace(storable(element.text or "")) if local_name(element) else ""
        if local_name(element) == "title":
            title = title or text
        elif text and (key := _METADATA.get(local_name(element), "")):
            metadata.setdefault(key, text[:10] if key == "date" else text)
    return title, metadata


def local_name(element: etree._Element) -> str:
    """Return an element's local name; empty for comments and instructions."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def attribute_of(element: etree._Element, name: str) -> str:
    """Return an attribute by its local name, whatever its namespace; empty for none."""
    for key, value in element.attrib.items():
        if str(key).rpartition("}")[2] == name:
            return str(value)
    return ""


def repetitions_of(element: etree._Element, name: str) -> int:
    count = attribute_of(element, name)
    return int(count) if count.isdigit() else 1
