"""LaTeX: sections, paragraphs, lists, tables, notes; equations are kept as they are written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from lxml import etree

from tgraph.errors import IngestError
from tgraph.ingest.base import FileContent, FileLimits, split_words
from tgraph.ingest.blocks import LossList, PageBuilder
from tgraph.ingest.html_blocks import LABEL, MARK, NOTE, add_html_blocks
from tgraph.ingest.html_selection import ContentSelection
from tgraph.ingest.latex_source import LISTING, LatexSource, prepare_latex, read_group
from tgraph.ingest.text import decode_text
from tgraph.ingest.unit_counts import compare_characters, count_characters
from tgraph.ingest.xml_tree import add_element, append_text
from tgraph.model import Page, UnitCount
from tgraph.rendering import collapse_whitespace

_LEVELS = {
    name: level
    for level, name in enumerate(
        ("part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph"),
    )
}
_MATH = split_words(
    "equation align eqnarray gather multline displaymath math alignat flalign dmath IEEEeqnarray"
    " subequations"
)
_BARE_MATH = split_words("equation displaymath math")
_LISTS = {"itemize": "ul", "enumerate": "ol", "description": "ul", "compactitem": "ul"}
_TABLES = split_words("tabular tabularx tabulary longtable tabu supertabular NiceTabular")
_DRAWINGS = split_words("tikzpicture pspicture picture pgfpicture forest")
_STATEMENTS = split_words(
    "theorem lemma definition proposition corollary remark example proof conjecture claim"
)
_CITATIONS = split_words(
    "cite citep citet citealp citealt citeauthor citeyear citeyearpar parencite textcite autocite"
    " footcite Cite Citep Citet"
)
_REFERENCES = split_words("ref eqref pageref autoref cref Cref nameref vref")
_NOTES = split_words("footnote footnotetext thanks")
_FILES = split_words("input include subfile import")
_IMAGES = split_words("includegraphics includesvg epsfig epsfbox psfig")
_LAST_ARGUMENT = {
    "textcolor": "[{{", "href": "{{", "hyperref": "[{", "parbox": "[[[{{", "raisebox": "{[[{",
    "resizebox": "*{{{", "scalebox": "{[{", "rotatebox": "[{{", "colorbox": "{{", "makecell": "*[{",
    "adjustbox": "{{", "mbox": "{", "hbox": "{", "fbox": "{", "makebox": "[[{", "framebox": "[[{",
    "texorpdfstring": "{{", "uppercase": "{", "footnotesize": "", "shortstack": "[{",
    "thead": "*[{", "multicolumn": "{{{", "multirow": "[{[{[{",
}  # fmt: skip
_DROPPED = {
    "label": "{", "vspace": "*{", "hspace": "*{", "setlength": "{{", "addtolength": "{{",
    "setcounter": "{{", "addtocounter": "{{", "usepackage": "[{[", "documentclass": "[{[",
    "bibliographystyle": "{", "color": "[{", "pagestyle": "{", "thispagestyle": "{",
    "pagenumbering": "{", "hypersetup": "{", "graphicspath": "{", "nocite": "{", "cmidrule": "[{",
    "cline": "{", "rule": "[{{", "arraystretch": "", "fontsize": "{{", "selectfont": "",
    "definecolor": "{{{", "newtheorem": "*{[{[", "theoremstyle": "{", "numberwithin": "{{",
    "addcontentsline": "{{{", "cmidrulewidth": "", "rowcolor": "[{", "cellcolor": "[{",
    "columncolor": "[{", "arrayrulecolor": "{", "linespread": "{", "phantom": "{", "hphantom": "{",
    "vphantom": "{", "index": "{", "markboth": "{{", "markright": "{", "captionsetup": "[{",
    "orcidID": "{", "authorrunning": "{", "titlerunning": "{", "bibinfo": "{", "setstretch": "{",
    "enlargethispage": "{", "pagecolor": "{", "newlength": "{", "newcounter": "{",
    "hyphenation": "{", "lstset": "{", "usetikzlibrary": "{", "renewenvironment": "{[[{{",
    "newenvironment": "{[[{{", "let": "", "newif": "", "addbibresource": "{", "phantomsection": "",
}  # fmt: skip
_SILENT_TEXT = re.compile(
    rf"\\begin\{{thebibliography\}}\{{[^}}]*\}}|\\{LISTING}\{{\d*\}}"
    r"|\\(?:begin|end)\s*\{[^}]*\}(?:\[[^\]]*\])?"
    rf"|\\(?:{'|'.join((*_DROPPED, *_FILES, *_IMAGES, 'bibliography'))})\*?(?![A-Za-z])"
    r"(?:\s*(?:\[[^\]]*\]|\{[^{}]*\}))*"
    r"|\\multi(?:column|row)(?:\s*\[[^\]]*\])?\s*\{[^}]*\}(?:\[[^\]]*\])?\s*\{[^{}]*\}"
    r"|\\(?:textcolor|colorbox|href)(?:\[[^\]]*\])?\s*\{[^}]*\}"
    r"|\\[A-Za-z@]+\*?(?:\[[^\]]*\])?|\\."
)
_MATH_TEXT = re.compile(
    r"(?<!\\)\$\$.*?\$\$|(?<!\\)\$.*?(?<!\\)\$|\\\(.*?\\\)|\\\[.*?\\\]"
    rf"|\\begin\{{((?:{'|'.join(sorted(_MATH))}|{'|'.join(sorted(_DRAWINGS))})\*?)\}}.*?\\end\{{\1\}}"
    r"|\\begin\{(?:tabular|longtable|array|tabulary)\*?\}(?:\[[^\]]*\])?\{(?:[^{}]|\{[^{}]*\})*\}"
    r"|\\begin\{tabular[x*]\}\{[^{}]*\}\{(?:[^{}]|\{[^{}]*\})*\}",
    re.S,
)
_FRONT = re.compile(r"\\(?:title|author)(?:\[[^\]]*\])?\s*(?=\{)")
_NOTE_MARK = re.compile(r"\[\d+\]")
_LONGEST_NAME = 60
_BRACES = str.maketrans("{}", "  ")
_BOUNDARY = re.compile(
    r"\\(begin|end)\s*\{|\\(?:sub)*section\b|\\chapter\b|\\.|[{}]|\n[ \t]*\n", re.S
)
_LABEL = re.compile(r"\\(?:label\{[^}]*\}|nonumber\b|notag\b)")
_EMPTY_LINE = re.compile(r"\n[ \t]*\n\s*")


def read_latex(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read LaTeX as a single page.

    Files that the text includes aren't read, and no package is run. Raises ``IngestError`` for a
    text without words and for groups nested too deeply."""
    import pylatexenc

    source = prepare_latex(decode_text(data, name, limits))
    before, begin, rest = source.text.partition(r"\begin{document}")
    body = rest.partition(r"\end{document}")[0] if begin else before
    losses = LossList()
    writer = _LatexWriter(source, losses)
    try:
        for front in _FRONT.finditer(before if begin else ""):
            writer.write(before[front.start() : read_group(before, front.end())])
        writer.write(body)
    except RecursionError:
        raise IngestError(
            name, "The groups of the LaTeX are nested too deeply.", "Close the groups."
        ) from None
    builder = PageBuilder()
    add_html_blocks(writer.finish(), ContentSelection(), builder, losses)
    if not builder.has_text:
        raise IngestError(name, "The LaTeX holds no text.")
    page = builder.page()
    losses.add("comment", "comments aren't printed", count=source.comment_count)
    if not source.is_expanded:
        losses.warn("Commands that the file defines aren't expanded: the text would grow too long.")
    report = losses.report(
        f"pylatexenc {pylatexenc.__version__}", [_count_letters(source, body, page)]
    )
    title = writer.title or (page.headings[0].text if page.headings else "")
    author = {"author": writer.author} if writer.author else {}
    return FileContent((page,), title, author, report)


def _count_letters(source: LatexSource, body: str, page: Page) -> UnitCount:
    """Return the count of letters and digits, those of the file found without its parser."""
    plain = _SILENT_TEXT.sub(" ", _MATH_TEXT.sub(" ", body))
    count = compare_characters(
        count_characters(filter(str.isalnum, "".join((plain, *source.listings)))),
        "".join(filter(str.isalnum, page.text)),
    )
    return UnitCount("letters and digits", count.in_file, count.in_text)


@cache
def _context() -> Any:
    """Return the commands whose arguments the parser knows."""
    from pylatexenc.latexwalker import get_default_latex_context_db
    from pylatexenc.macrospec import EnvironmentSpec, MacroSpec

    forms = {
        **dict.fromkeys(_CITATIONS, "*[[{"),
        **dict.fromkeys(_REFERENCES, "*{"),
        **dict.fromkeys(_NOTES, "[{"),
        **dict.fromkeys(_FILES, "{"),
        **dict.fromkeys(_IMAGES, "*[[{"),
        **dict.fromkeys(_LEVELS, "*[{"),
        **dict.fromkeys(("title", "author", "caption"), "[{"),
        **dict.fromkeys(("sout", "st", "textsuperscript", "textsubscript", "url", "date"), "{"),
        **_LAST_ARGUMENT,
        **_DROPPED,
        **{"captionof": "{[{", "bibitem": "[{", "item": "[", "bibliography": "{", LISTING: "{"},
    }
    environments = {
        "tabular": "[{", "tabular*": "{[{", "tabularx": "{[{", "tabulary": "{{", "longtable": "[{",
        "wrapfigure": "[{[{", "wraptable": "[{[{", "minipage": "[[[{", "thebibliography": "{",
        "figure": "[", "table": "[", "figure*": "[", "table*": "[", "multicols": "{",
        "itemize": "[", "enumerate": "[", "description": "[", "adjustbox": "{",
        "alignat": "{", "alignat*": "{", "list": "{{", "subfigure": "[{", "algorithm": "[",
    }  # fmt: skip
    context = get_default_latex_context_db()
    context.add_context_category(
        "tgraph",
        macros=[MacroSpec(name, form) for name, form in forms.items()],
        environments=[EnvironmentSpec(name, form) for name, form in environments.items()],
        prepend=True,
    )
    return context


def _split_pieces(text: str) -> Iterator[str]:
    """Yield the parts of a text between empty lines outside groups and environments, and between
    sections."""
    start = depth = 0
    for match in _BOUNDARY.finditer(text):
        sign = match[0]
        if sign == "{" or match[1] == "begin":  # whose name is a group too
            depth += 2 if match[1] else 1
        elif sign == "}":
            depth = max(0, depth - 1)
        elif sign.endswith(("section", "chapter")) or (sign[0] == "\n" and not depth):
            yield text[start : match.start()]
            start, depth = match.start(), 0
    yield text[start:]


def _parse(text: str) -> Sequence[Any]:
    from pylatexenc.latexwalker import LatexWalker

    walker = LatexWalker(text, latex_context=_context(), tolerant_parsing=False)
    return walker.get_latex_nodes()[0] or ()


class _LatexWriter:
    """Writes the nodes of the parser as an HTML tree."""

    def __init__(self, source: LatexSource, losses: LossList) -> None:
        from pylatexenc.latex2text import LatexNodes2Text

        self.title = self.author = ""
        self._source, self._losses = source, losses
        self._tree = etree.Element("body")
        self._holder = self._inline = self._tree
        self._is_open = False
        self._notes: list[Any] = []
        self._note_count = 0
        self._first_level = 2
        self._symbols = LatexNodes2Text(strict_latex_spaces=True)

    def write(self, body: str) -> None:
        """Write the document's body."""
        has_chapters = re.search(r"\\chapter\b", body) is not None
        self._first_level = 2 - _LEVELS["chapter" if has_chapters else "section"]
        for piece in _split_pieces(body):
            if not self._write_source(piece):
                self._write_damaged(piece)

    def _write_source(self, source: str) -> bool:
        """Write LaTeX, and return whether its groups and environments are closed."""
        from pylatexenc.latexwalker import LatexWalkerError

        try:
            nodes = _parse(source)
        except (LatexWalkerError, RecursionError):
            return False
        self._write_nodes(nodes)
        return True

    def _write_damaged(self, source: str) -> None:
        """Write LaTeX by its paragraphs; of one that can't be parsed, the text without commands."""
        for paragraph in _EMPTY_LINE.split(source):
            self._end_paragraph()
            if not self._write_source(paragraph):
                self._add_text(_SILENT_TEXT.sub(" ", paragraph).translate(_BRACES))
                self._losses.add("damaged part", "a group or environment isn't closed", marked=True)
        self._end_paragraph()

    def finish(self) -> etree._Element:
        """Return the tree with the notes that are left."""
        self._end_paragraph()
        return self._tree

    # --- text ---

    def _add_text(self, text: str) -> None:
        for number, part in enumerate(_EMPTY_LINE.split(text)):
            if number:
                self._end_paragraph()
            if part.strip() or self._is_open:
                append_text(self._open_inline(), part)

    def _open_inline(self) -> etree._Element:
        if not self._is_open:
            self._inline = add_element(self._holder, "p")
            self._is_open = True
        return self._inline

    def _end_paragraph(self) -> None:
        self._is_open = False
        waiting, self._notes = self._notes, []
        for label, node in waiting:
            note = add_element(self._holder, NOTE)
            add_element(note, LABEL, label)
            self._write_inside(note, [node])

    def _add_block(self, tag: str) -> etree._Element:
        self._is_open = False
        return add_element(self._holder, tag)

    def _write_inside(self, element: etree._Element, nodes: Iterable[Any]) -> None:
        """Write nodes into an element whose text begins at once."""
        before = self._holder, self._inline, self._is_open
        self._holder = self._inline = element
        self._is_open = True
        self._write_nodes(nodes)
        self._holder, self._inline, self._is_open = before

    def _write_blocks(self, element: etree._Element, nodes: Iterable[Any]) -> None:
        """Write nodes into an element as paragraphs."""
        before, self._holder = self._holder, element
        self._is_open = False
        self._write_nodes(nodes)
        self._end_paragraph()
        self._holder = before

    def _write_nodes(self, nodes: Iterable[Any]) -> None:
        for node in nodes:
            if node is not None:
                _WRITERS.get(_kind(node), _LatexWriter._skip_node)(self, node)

    def _skip_node(self, node: Any) -> None:
        """Leave out a comment."""

    def _write_characters(self, node: Any) -> None:
        self._add_text(node.chars)

    def _write_group(self, node: Any) -> None:
        self._write_nodes(node.nodelist)

    def _write_specials(self, node: Any) -> None:
        if node.specials_chars.strip() == "":
            self._end_paragraph()
        elif node.specials_chars == "~":
            self._add_text("\xa0")
        elif node.specials_chars != "&":
            self._add_text(str(self._symbols.nodelist_to_text([node])))

    def _write_math(self, node: Any) -> None:
        latex = node.latex_verbatim()[len(node.delimiters[0]) : -len(node.delimiters[1])]
        self._add_math(latex, is_block=node.displaytype == "display")

    def _add_math(self, latex: str, *, is_block: bool) -> None:
        text = collapse_whitespace(_LABEL.sub("", latex))
        if text:
            holder = self._add_block("p") if is_block else self._open_inline()
            add_element(holder, "math").set("alttext", text)

    # --- commands ---

    def _write_macro(self, node: Any) -> None:
        name = node.macroname
        if name in _LEVELS:
            self._end_paragraph()
            level = max(1, min(6, _LEVELS[name] + self._first_level))
            self._write_inside(self._add_block(f"h{level}"), _last_argument(node))
        elif name in _CITATIONS or name in _REFERENCES:
            kind = "cite" if name in _CITATIONS else "ref"
            keys = ", ".join(map(str.strip, _plain(_last_argument(node)).split(",")))
            self._add_text(f"[{kind}: {keys}]")
        elif name in _NOTES:
            self._note_count += 1
            append_text(self._open_inline(), f"[{self._note_count}]")
            self._notes += [(str(self._note_count), part) for part in _last_argument(node)]
        elif name in _FILES or name == "bibliography":
            kind = "bibliography" if name == "bibliography" else "included file"
            self._add_mark(kind, _plain(_last_argument(node)), "index the file by itself")
        elif name in _IMAGES:
            add_element(self._open_inline(), "img").set("alt", _plain(_last_argument(node)))
        elif name in ("title", "author"):
            self._write_front(node)
        elif name in ("caption", "captionof"):
            self._write_inside(self._add_block("figcaption"), _last_argument(node))
        elif name == LISTING:
            self._write_listing(_plain(_last_argument(node)))
        else:
            self._write_inline_macro(name, node)

    def _write_inline_macro(self, name: str, node: Any) -> None:
        if name in ("\\", "newline", "linebreak", "tabularnewline"):
            add_element(self._open_inline(), "br")
        elif name == "par":
            self._end_paragraph()
        elif name in ("sout", "st", "textsuperscript", "textsubscript"):
            tag = {"textsuperscript": "sup", "textsubscript": "sub"}.get(name, "s")
            self._write_inside(add_element(self._open_inline(), tag), _last_argument(node))
        elif name in _DROPPED:
            return
        elif name in _LAST_ARGUMENT or name.startswith(("text", "emph", "underline", "url", "and")):
            self._write_named(name, node)
        elif not (text := str(self._symbols.nodelist_to_text([node]))).startswith(("<", "[")):
            self._add_text(text)

    def _write_named(self, name: str, node: Any) -> None:
        """Write a command that shows its last argument, or a symbol such as ``\\textbar``."""
        if name == "and":
            inline = self._open_inline()
            holder, name = (inline[-1], "tail") if len(inline) else (inline, "text")
            setattr(holder, name, (getattr(holder, name) or "").rstrip() + ", ")
        elif arguments := _last_argument(node):
            self._write_nodes(arguments)
        else:
            self._add_text(str(self._symbols.nodelist_to_text([node])))

    def _write_front(self, node: Any) -> None:
        """Write title or authors, which stand in the text where they are stated."""
        is_title = node.macroname == "title"
        self._end_paragraph()
        block = self._add_block("h1" if is_title else "p")
        self._write_inside(block, _last_argument(node))
        texts = map(str, block.itertext("h1", "p", "span"))
        text = collapse_whitespace("".join(texts).partition("\n\n")[0])
        if is_title:
            self.title = self.title or text
        else:
            names = (_NOTE_MARK.sub("", part).strip() for part in text.split(", "))
            plain = [n for n in names if 0 < len(n) <= _LONGEST_NAME and "@" not in n]
            self.author = self.author or ", ".join(plain)
        self._end_paragraph()

    def _write_listing(self, number: str) -> None:
        if number.isdecimal() and int(number) < len(self._source.listings):
            self._add_block("pre").text = self._source.listings[int(number)]

    def _add_mark(self, kind: str, description: str, reason: str) -> None:
        add_element(self._open_inline(), MARK, f"{kind}: {description}")
        self._losses.add(kind, reason, marked=True)

    # --- environments ---

    def _write_environment(self, node: Any) -> None:
        name = node.environmentname
        bare = name.rstrip("*")
        if bare in _MATH:
            inner = "".join(part.latex_verbatim() for part in node.nodelist or ())
            is_bare = bare in _BARE_MATH
            self._add_math(inner if is_bare else node.latex_verbatim(), is_block=bare != "math")
        elif bare in _LISTS:
            self._write_list(node, _LISTS[bare])
        elif bare in _TABLES:
            self._write_table(node)
        elif bare == "thebibliography":
            self._end_paragraph()
            self._add_block("h2").text = "References"
            self._write_list(node, "ul")
        elif bare in _DRAWINGS:
            self._add_mark("drawing", "", "a drawing isn't text")
        else:
            self._end_paragraph()
            if bare == "abstract":
                self._add_block("h2").text = "Abstract"
            elif bare in _STATEMENTS:
                self._add_block("figcaption").text = bare.capitalize()
            self._write_blocks(self._add_block("div"), node.nodelist)

    def _write_list(self, node: Any, tag: str) -> None:
        self._is_open = False
        outer = self._add_block(tag)
        items: list[tuple[Any, list[Any]]] = []
        for part in node.nodelist:
            if _kind(part) == "Macro" and part.macroname in ("item", "bibitem"):
                items.append((part, []))
            elif items:
                items[-1][1].append(part)
        for opening, nodes in items:
            item = add_element(outer, "li")
            label = opening.nodeargd.argnlist[0] if opening.nodeargd else None
            if opening.macroname == "bibitem":
                add_element(item, LABEL, f"[{_plain(_last_argument(opening))}]")
            elif label is not None:
                self._write_inside(item, [label, *_parse(": ")])
            before, self._holder = self._holder, item
            self._inline, self._is_open = item, True
            self._write_nodes(nodes)
            self._end_paragraph()
            self._holder = before

    def _write_table(self, node: Any) -> None:
        self._is_open = False
        table = self._add_block("table")
        rows: list[list[list[Any]]] = [[[]]]
        heads = 0
        for part in node.nodelist:
            if _kind(part) == "Macro" and part.macroname in ("\\", "tabularnewline"):
                rows.append([[]])
            elif _kind(part) == "Macro" and part.macroname in (
                "midrule",
                "endhead",
                "endfirsthead",
            ):
                heads = heads or len(rows) - 1
            elif _kind(part) == "Specials" and part.specials_chars == "&":
                rows[-1].append([])
            else:
                rows[-1][-1].append(part)
        covered: Counter[int] = Counter()
        for number, cells in enumerate(rows):
            line = add_element(table, "tr")
            column = 0
            for nodes in cells:
                if covered[column] and not any(map(_is_visible, nodes)):
                    covered[column] -= 1  # an empty cell below one of several rows
                    column += 1
                    continue
                cell = add_element(line, "th" if number < heads else "td")
                self._write_cell(cell, nodes)
                covered[column] = int(cell.get("rowspan", "1")) - 1
                column += int(cell.get("colspan", "1"))

    def _write_cell(self, cell: etree._Element, nodes: Sequence[Any]) -> None:
        for node in nodes:
            if _kind(node) == "Macro" and node.macroname in ("multicolumn", "multirow"):
                places = node.nodeargd.argnlist if node.nodeargd else []
                count = _plain([places[0 if node.macroname == "multicolumn" else 1]])
                side = "colspan" if node.macroname == "multicolumn" else "rowspan"
                if count.isascii() and count.isdigit() and len(count) < 4:
                    cell.set(side, count)
        self._write_inside(cell, nodes)


_WRITERS: dict[str, Callable[[_LatexWriter, Any], None]] = {
    "Chars": _LatexWriter._write_characters,
    "Group": _LatexWriter._write_group,
    "Specials": _LatexWriter._write_specials,
    "Math": _LatexWriter._write_math,
    "Macro": _LatexWriter._write_macro,
    "Environment": _LatexWriter._write_environment,
}


def _kind(node: Any) -> str:
    return type(node).__name__.removeprefix("Latex").removesuffix("Node")


def _is_visible(node: Any) -> bool:
    is_rule = _kind(node) == "Macro" and (node.macroname in _DROPPED or "line" in node.macroname)
    return not is_rule and bool(node.latex_verbatim().strip())


def _last_argument(node: Any) -> list[Any]:
    arguments = node.nodeargd.argnlist if node.nodeargd else ()
    return [part for part in arguments if part is not None][-1:]


def _plain(nodes: Iterable[Any]) -> str:
    """Return the source of an argument without its braces, as one line."""
    parts = (node.latex_verbatim() for node in nodes if node is not None)
    return collapse_whitespace("".join(parts).strip().removeprefix("{").removesuffix("}"))
