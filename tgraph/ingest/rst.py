"""reStructuredText, read by docutils into plain blocks: headings, paragraphs, items, rows, code.

Nothing is included, nothing is run. What Sphinx adds is read as text: a role by what it shows, a
directive that docutils doesn't know by its argument and its content.
"""

from __future__ import annotations

import io
import re
from typing import Any

import docutils
from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Parser
from docutils.parsers.rst.states import Inliner

from tgraph.errors import IngestError
from tgraph.ingest.base import FileContent, FileLimits, error_reason, storable
from tgraph.ingest.blocks import PageBuilder
from tgraph.ingest.tables import add_grid
from tgraph.ingest.text import decode_text, metadata_key
from tgraph.model import ReadingReport
from tgraph.rendering import collapse_whitespace

_SETTINGS = {
    "_disable_config": True,
    "doctitle_xform": False,
    "docinfo_xform": False,
    "file_insertion_enabled": False,
    "halt_level": 5,
    "raw_enabled": False,
    "report_level": 5,
    "smart_quotes": False,
    "syntax_highlight": "none",
    "warning_stream": io.StringIO(),
}
_UNSHOWN = (
    *(nodes.comment, nodes.substitution_definition, nodes.target, nodes.raw, nodes.pending),
    *(nodes.meta, nodes.decoration, nodes.topic, nodes.label),
)
_MARKS = (nodes.footnote_reference, nodes.citation_reference, nodes.raw, nodes.system_message)
_MARK = "\x01"
_MARKED = re.compile(r" ?\x01")
_UNKNOWN = "Unknown directive type"
_DIRECTIVE = re.compile(r"\s*\.\. ([\w:.+-]{1,60})::[ \t]*(.*)")
_OPTION = re.compile(r"\s*:[\w -]{1,40}:(?:\s|$)")
_NO_TEXT = frozenset(("toctree", "contents", "index", "highlight", "currentmodule", "only"))
_ROLE_TARGET = re.compile(r"(?<!\s)\s*<[^<>]*>$")
_DEEPEST = 5


def read_rst(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read reStructuredText as a single page of blocks, with headings."""
    source = storable(decode_text(data, name, limits))
    walk = _RstReader()
    try:
        walk.read(_parse_tree(source, name), 0)
    except RecursionError:
        raise IngestError(name, "Its blocks are nested too deep to be read.") from None
    except Exception as error:  # docutils fails on some broken mark-up in any way whatever
        raise IngestError(name, f"It can't be read: {error_reason(error)}.") from None
    page = walk.builder.page()
    if not page.text.strip():
        raise IngestError(name, "The reStructuredText shows no text.")
    title = walk.metadata.pop("title", "") or (page.headings[0].text if page.headings else "")
    report = ReadingReport(f"docutils {docutils.__version__}")
    return FileContent((page,), title, walk.metadata, report)


def _parse_tree(source: str, name: str) -> nodes.document:
    """Return the document tree, reading every role, known or unknown, as its visible text."""
    inliner = Inliner()  # no class of our own: it looks for its patterns in the very class
    vars(inliner)["interpreted"] = _render_role
    return publish_doctree(
        source, source_path=name, parser=Parser(inliner=inliner), settings_overrides=_SETTINGS
    )


def _render_role(rawsource: str, text: str, role: str, lineno: int) -> Any:
    role_text = _ROLE_TARGET.sub("", text).lstrip("!~") or text
    return [nodes.literal(rawsource, role_text.replace("\0", ""))], []


class _RstReader:
    """A walk over a docutils tree, building the page."""

    def __init__(self) -> None:
        self.builder = PageBuilder()
        self.metadata: dict[str, str] = {}
        self._level = 0

    def read(self, node: nodes.Element, depth: int) -> None:
        for child in node.children:
            if isinstance(child, nodes.Element):
                self._read_block(child, depth)

    def _read_block(self, node: nodes.Element, depth: int) -> None:
        if isinstance(node, _UNSHOWN):
            return
        if isinstance(node, nodes.section):
            self._level += 1
            self.read(node, depth)
            self._level -= 1
        elif isinstance(node, nodes.title) and self._level:
            self.builder.add_heading(_node_text(node), self._level)
        elif isinstance(node, nodes.system_message):
            self._read_unknown(node, depth)
        elif isinstance(node, nodes.field_list):
            self._read_fields(node)
        elif isinstance(node, nodes.FixedTextElement) and not isinstance(node, nodes.address):
            self.builder.add_code(node.astext())
        elif isinstance(node, nodes.table):
            self._add_table(node)
        elif isinstance(node, (nodes.list_item, nodes.definition_list_item)):
            self._read_item(node, depth)
        elif isinstance(node, (nodes.TextElement, nodes.line_block)):
            self.builder.add_paragraph(_node_text(node))
        else:
            self.read(node, depth)

    def _read_item(self, node: nodes.Element, depth: int) -> None:
        """Read a list item: leading text on the item line, remaining content as separate
        blocks."""
        children = [child for child in node.children if isinstance(child, nodes.Element)]
        if isinstance(node, nodes.definition_list_item):
            term = "".join(_node_text(c) for c in children if isinstance(c, nodes.term))
            bodies = [c for c in children if isinstance(c, nodes.definition)]
            children = [c for body in bodies for c in body.children if isinstance(c, nodes.Element)]
            first = children[:1] if children and isinstance(children[0], nodes.paragraph) else []
            self.builder.add_item(": ".join([collapse_whitespace(term), *map(_node_text, first)]))
        else:
            first = children[:1] if children and isinstance(children[0], nodes.paragraph) else []
            self.builder.add_item("".join(map(_node_text, first)))
        for child in children[len(first) :]:
            self._read_block(child, depth)

    def _read_fields(self, node: nodes.Element) -> None:
        """Read fields: document metadata at the very beginning, lines ``Name: value``
        elsewhere."""
        is_head = self.builder.block_count < 2  # after the title, or before it
        for field in node.children:
            name, body = (collapse_whitespace(part.astext()) for part in field.children[:2])
            key = metadata_key(name) if is_head else ""
            if key and body:
                self.metadata.setdefault(key, storable(body))
            elif body and not is_head:
                self.builder.add_field(name, body)

    def _add_table(self, node: nodes.Element) -> None:
        titles = [child for child in node.children if isinstance(child, nodes.title)]
        rows = [
            [storable(entry.astext()) for entry in row.children] for row in node.findall(nodes.row)
        ]
        heads = [row for head in node.findall(nodes.thead) for row in head.findall(nodes.row)]
        caption = " ".join(map(_node_text, titles))
        add_grid(self.builder, rows, len(heads) or None, caption)

    def _read_unknown(self, node: nodes.Element, depth: int) -> None:
        """Read a directive unknown to docutils: the argument, then the content parsed
        separately."""
        blocks = [child for child in node.children if isinstance(child, nodes.literal_block)]
        if not blocks or _UNKNOWN not in node.astext()[:200] or depth >= _DEEPEST:
            return
        first, *remaining_lines = blocks[0].astext().split("\n")
        match = _DIRECTIVE.match(first)
        if match is None or match[1] in _NO_TEXT:
            return
        while remaining_lines and _OPTION.match(remaining_lines[0]):
            remaining_lines.pop(0)
        if any(map(str.isalpha, match[2])):
            self.builder.add_paragraph(match[2])
        margin = min(
            (len(line) - len(line.lstrip()) for line in remaining_lines if line.strip()), default=0
        )
        if content := "\n".join(line[margin:] for line in remaining_lines).strip():
            self.read(_parse_tree(content, ""), depth + 1)


def _node_text(node: nodes.Node) -> str:
    """The text of a node without marks of references and messages; lines of verse stay lines."""
    return _MARKED.sub("", _marked_text(node))


def _marked_text(node: nodes.Node) -> str:
    if isinstance(node, nodes.Text):
        return " ".join(node.astext().split("\n"))
    if isinstance(node, nodes.image):
        return str(node.get("alt", ""))
    if isinstance(node, nodes.problematic):  # what it refers to is defined elsewhere
        text = node.astext()
        return _MARK if text.startswith("[") and text.endswith("]_") else text.strip("`|_*")
    if isinstance(node, _MARKS):
        return _MARK
    separator = "\n" if isinstance(node, nodes.line_block) else ""
    return separator.join(map(_marked_text, node.children))
