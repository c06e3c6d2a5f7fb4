"""XML: articles in JATS, and the text of any other XML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from lxml import etree

from tgraph.errors import IngestError
from tgraph.ingest.archive import unreadable_error
from tgraph.ingest.base import FileContent, FileLimits, error_reason
from tgraph.ingest.blocks import LossList, PageBuilder
from tgraph.ingest.html import parse_markup
from tgraph.ingest.html_blocks import add_html_blocks
from tgraph.ingest.html_selection import REASONS, ContentSelection, select_content
from tgraph.ingest.jats import JatsConverter, is_jats
from tgraph.ingest.unit_counts import compare_characters, count_characters
from tgraph.ingest.xml_tree import MARKUP, XmlConverter, attribute, plain_text, read_texts
from tgraph.ingest.xml_vocabulary import XmlVocabulary, holds_text, remove_wrappers
from tgraph.model import Page, UnitCount

_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}RDF"
_MOST_NAMES = 5
_PAUSES = (".", "!", "?", ":", ";", ",", "。")
_FEWEST_BROKEN, _BROKEN_SHARE = 3, 0.1
_MARKUP = re.compile(
    r"</(?:p|div|span|a|b|i|em|strong|table|ul|ol|li|td|font|h[1-6])\s{0,9}>|<br\s{0,9}/?>", re.I
)
_XHTML = "{http://www.w3.org/1999/xhtml}html"


def read_xml(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read an article in JATS, or the text of any other XML, as a single page.

    Entities aren't expanded, nor files of the DTD read. Raises ``IngestError`` for XML that isn't
    well-formed, is nested too deeply, holds no text, or states RDF."""
    root = _parse_xml(data, name)
    if root.tag == _RDF:
        raise IngestError(
            name,
            "The file is RDF/XML: statements, not a document.",
            "Use `tgraph import` to read statements.",
        )
    if root.tag == _XHTML:
        from tgraph.ingest.html import read_html

        return read_html(data, name, limits)
    losses = LossList()
    remove_wrappers(root)
    _open_markup(root, name, losses)
    vocabulary = XmlVocabulary(root)
    converter = (JatsConverter if is_jats(root) else XmlConverter)(losses, vocabulary)
    tree = etree.Element("body")
    converter.convert(root, tree, 1)
    builder = PageBuilder()
    add_html_blocks(tree, ContentSelection(), builder, losses)
    if not builder.has_text:
        raise IngestError(name, "The XML holds no text.")
    page = builder.page()
    kind = "JATS" if isinstance(converter, JatsConverter) else "generic XML"
    metadata = {"language": attribute(root, "lang")} if attribute(root, "lang") else {}
    title = ""
    left = converter.left
    if isinstance(converter, JatsConverter):
        metadata |= converter.metadata
        title = converter.title
        left = left + _count_metadata(root, page.text)
        fields = (plain_text(e) for f in _fronts(root) for e in f.iter() if not len(e))
        count = sum(bool(text) and text not in page.text for text in fields)
        reason = "identifiers, numbers and roles aren't the article's text"
        losses.add("field of metadata", reason, count=count)
    _warn_of_doubts(vocabulary, page, losses)
    units = [compare_characters(count_characters(read_texts(root)), page.text, left)]
    if converter.formulas:
        units.append(UnitCount("formulas", converter.formulas, converter.read_formulas))
    title = title or (page.headings[0].text if page.headings else "")
    report = losses.report(f"lxml {etree.__version__} ({kind})", units)
    return FileContent((page,), title, metadata, report)


def _open_markup(root: etree._Element, name: str, losses: LossList) -> None:
    """Put HTML that stands as text in an element, as feeds have it, under the element as a tree,
    without what nobody sees of it."""
    for element in list(root.iter("*")):
        text = element.text or ""
        if len(element) or holds_text(element) or not _MARKUP.search(text):
            continue
        try:
            markup = parse_markup(text, name)
        except IngestError:
            continue  # nested too deeply: the text stays as it is
        if markup is None:
            continue
        left_out = select_content(markup, with_furniture=True).left_out
        for part, kind in left_out.items():
            if kind and "".join(part.itertext()).strip():
                losses.add(kind, REASONS[kind])
            part.clear(keep_tail=True)
        markup.tag = MARKUP
        element.text = None
        element.append(markup)


def _warn_of_doubts(vocabulary: XmlVocabulary, page: Page, losses: LossList) -> None:
    """Warn where elements may have been read as blocks that are parts of a sentence."""
    if vocabulary.doubtful:
        names = ", ".join(sorted(vocabulary.doubtful)[:_MOST_NAMES])
        losses.warn(
            f"{vocabulary.doubtful.total()} elements in running text ({names}) were read as"
            " paragraphs: they hold sentences and no text adjoins them on their line."
        )
    paragraphs = [page.text[b.start : b.end] for b in page.blocks if b.kind == "prose"]
    broken = sum(
        text[0].islower() and not before.endswith(_PAUSES) and len(text.split()) > 1
        for before, text in pairwise(paragraphs)
    )
    if broken > _FEWEST_BROKEN and broken > _BROKEN_SHARE * len(paragraphs):
        losses.warn(
            f"{broken} of {len(paragraphs)} paragraphs begin within a sentence: elements of"
            " running text may have been read as paragraphs."
        )


def _count_metadata(root: etree._Element, text: str) -> Counter[str]:
    """Return the characters of the article's metadata that aren't in the stored text."""
    whole = count_characters(read_texts(root))
    front = count_characters(part for e in _fronts(root) for part in read_texts(e))
    return (whole - count_characters([text])) & front


def _fronts(root: etree._Element) -> Iterator[etree._Element]:
    return root.iter("{*}front", "{*}front-stub")  # type: ignore[no-any-return]


def _parse_xml(data: bytes, name: str) -> etree._Element:
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        return etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise unreadable_error(name, "XML", error_reason(error)) from None
