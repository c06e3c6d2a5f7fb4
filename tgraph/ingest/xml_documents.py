"""XML: articles in JATS, and the text of any other XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lxml import etree

from tgraph.errors import IngestError
from tgraph.ingest.archive import unreadable_error
from tgraph.ingest.base import FileContent, FileLimits, error_reason
from tgraph.ingest.blocks import LossList, PageBuilder
from tgraph.ingest.html_blocks import add_html_blocks
from tgraph.ingest.html_selection import ContentSelection
from tgraph.ingest.jats import JatsConverter, is_jats
from tgraph.ingest.unit_counts import compare_characters, count_characters
from tgraph.ingest.xml_tree import XmlConverter, attribute, plain_text, read_texts
from tgraph.model import UnitCount

_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}RDF"
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
    converter = JatsConverter(losses) if is_jats(root) else XmlConverter(losses)
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
    left: Counter[str] = Counter()
    if isinstance(converter, JatsConverter):
        metadata |= converter.metadata
        title = converter.title
        left = _count_metadata(root, page.text)
        fields = (plain_text(e) for f in _fronts(root) for e in f.iter() if not len(e))
        count = sum(bool(text) and text not in page.text for text in fields)
        reason = "identifiers, numbers and roles aren't the article's text"
        losses.add("field of metadata", reason, count=count)
    units = [compare_characters(count_characters(read_texts(root)), page.text, left)]
    if converter.formulas:
        units.append(UnitCount("formulas", converter.formulas, converter.read_formulas))
    title = title or (page.headings[0].text if page.headings else "")
    report = losses.report(f"lxml {etree.__version__} ({kind})", units)
    return FileContent((page,), title, metadata, report)


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
