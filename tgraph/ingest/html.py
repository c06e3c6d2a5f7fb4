"""HTML pages as blocks: what a person sees of the page, without the site's menus and notices."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lxml import etree

from tgraph.errors import IngestError
from tgraph.ingest.base import FileContent, FileLimits, storable
from tgraph.ingest.blocks import LossList, PageBuilder
from tgraph.ingest.html_blocks import add_html_blocks
from tgraph.ingest.html_selection import ContentSelection, select_content
from tgraph.ingest.text import decode_text
from tgraph.ingest.unit_counts import compare_characters
from tgraph.model import UnitCount
from tgraph.rendering import collapse_whitespace

_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=(?:\s*[\"'])?\s*([A-Za-z0-9_.:-]{2,40})", re.I)
_SENTENCE = re.compile(r"\w[.!?。！？](?:\s|$)")
_LARGEST_REST = 3
_SITE = re.compile(r" [|–—-] ")
_METADATA = {
    **dict.fromkeys(("author", "article:author", "dc.creator"), "author"),
    **dict.fromkeys(("date", "dc.date", "article:published_time"), "date"),
    **dict.fromkeys(("description", "og:description"), "description"),
}


def read_html(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read what a person sees of an HTML page as a single page.

    Scripts and hidden elements are left out; menus, site footers and notices about cookies only
    where other text remains. Raises ``IngestError`` if no text remains, and for elements nested
    deeper than the parser allows."""
    root = parse_html(data, name, limits)
    if root is None:
        raise _empty_error(name)
    for with_furniture in (False, True):
        builder, losses = PageBuilder(), LossList()
        selection = select_content(root, with_furniture=with_furniture)
        add_html_blocks(root, selection, builder, losses)
        page = builder.page()
        characters = _count_characters(root, selection, page.text)
        if builder.has_text and (with_furniture or not _is_rest(page.text, characters)):
            break
    else:
        raise _empty_error(name)
    title = _read_title(root) or (page.headings[0].text if page.headings else "")
    title = _without_site(title, [h.text for h in page.headings if h.level == 1])
    return FileContent(
        (page,), title, _read_metadata(root), losses.report(reader_name(), [characters])
    )


def reader_name() -> str:
    """Return the name and version of the library that reads HTML."""
    return f"lxml {etree.__version__}"


def parse_html(data: bytes, name: str, limits: FileLimits) -> etree._Element | None:
    """Return the root element of an HTML page; None for a page without elements."""
    match = _CHARSET.search(data[:4096])
    encoding = match[1].decode("ascii") if match else ""
    return parse_markup(decode_text(data, name, limits, encoding), name)


def _empty_error(name: str) -> IngestError:
    return IngestError(name, "The HTML contains no text; a script may produce the content.")


def parse_markup(markup: str, name: str) -> etree._Element | None:
    """Return the root element of markup; None for markup without elements."""
    parser = etree.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(markup.encode(), parser)
    except etree.XMLSyntaxError:
        root = None
    faults = {error.type_name for error in parser.error_log}
    if "ERR_NO_MEMORY" in faults:
        raise MemoryError
    if "ERR_RESOURCE_LIMIT" in faults:
        raise IngestError(
            name,
            "The elements of the HTML are nested too deeply.",
            "Close the elements of the HTML.",
        )
    return root


def _is_rest(text: str, characters: UnitCount) -> bool:
    """Return whether a text without a sentence is only a small part of what the page shows."""
    return characters.left_out > _LARGEST_REST * characters.in_text and not _SENTENCE.search(text)


def _count_characters(root: etree._Element, selection: ContentSelection, text: str) -> UnitCount:
    visible, left_out = selection.count_texts(root)
    return compare_characters(visible, text, left_out)


def _read_title(root: etree._Element) -> str:
    """Return the page's title, which isn't the title of a picture in it."""
    for title in root.iter("title"):
        if next(title.iterancestors("svg"), None) is None:
            return collapse_whitespace(storable("".join(title.itertext())))
    return ""


def _read_metadata(root: etree._Element) -> dict[str, str]:
    metadata: dict[str, str] = {}
    for element in root.iter("html", "meta"):
        if element.tag == "html":
            key, value = "language", element.get("lang")
        else:
            label = element.get("name") or element.get("property") or ""
            key, value = _METADATA.get(label.lower(), ""), element.get("content")
        text = collapse_whitespace(storable(value or ""))
        if key and text:
            metadata.setdefault(key, text)
    return metadata


def _without_site(title: str, headings: Sequence[str]) -> str:
    """``Endurance`` for ``Endurance | Polar Voyages`` where a main heading says so."""
    for match in reversed(list(_SITE.finditer(title))):
        page_title = title[: match.start()].strip()
        if any(
            heading.strip().lower() in page_title.lower() for heading in headings if heading.strip()
        ):
            title = page_title
    return title
