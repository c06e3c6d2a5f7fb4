"""How values look in a notebook: small, safe pieces of HTML.

Text of documents and models is untrusted. Everything is escaped, nothing is a link, and there is
no script and nothing to load. Colours are those of the notebook, so that light and dark both work.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tgraph.model import Answer, Citation

ROWS = 50
"""Rows of a table that are shown; the rest is counted."""
LONGEST = 400
"""Characters of a cell that are shown."""

_BIDI = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
_LINE = "rgba(128,128,128,.35)"
_FAINT = "opacity:.7;font-size:.9em"
_CELL = (
    f"text-align:left;vertical-align:top;padding:.25em .8em .25em 0;border-bottom:1px solid {_LINE}"
)
_QUOTE = f"margin:.2em 0;padding-left:.7em;border-left:3px solid {_LINE};white-space:pre-wrap"


def text(value: object, most: int | None = None) -> str:
    """The text as harmless HTML: escaped, cut with an ellipsis where it is too long, and control
    and bidirectional characters shown as their escapes."""
    said = str(value)
    if most is not None and len(said) > most:
        said = said[: most - 1].rstrip() + "…"
    return escape("".join(map(_visible, said)), quote=True)


def _visible(character: str) -> str:
    if character in "\n\t" or not (
        unicodedata.category(character) in ("Cc", "Cs")
        or unicodedata.bidirectional(character) in _BIDI
    ):
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def block(title: str, *parts: str, note: str = "") -> str:
    """A value: its title and note (plain texts) and its parts (HTML)."""
    head = f'<div style="font-weight:600" dir="auto">{text(title)}</div>'
    faint = f'<div style="{_FAINT}" dir="auto">{text(note)}</div>' if note else ""
    style = "max-width:70em;line-height:1.45;margin:.4em 0"
    return f'<div style="{style}">{head}{"".join(parts)}{faint}</div>'


def paragraph(html: str) -> str:
    """A paragraph of HTML."""
    return f'<p style="margin:.4em 0" dir="auto">{html}</p>'


def quote(said: str, source: str) -> str:
    """Quoted characters and where they stand, both plain texts."""
    return (
        f'<blockquote style="{_QUOTE}" dir="auto">{text(said, LONGEST)}'
        f'<div style="{_FAINT}">{text(source)}</div></blockquote>'
    )


def folded(title: str, html: str) -> str:
    """HTML that a click on the title (a plain text) shows."""
    return f'<details style="margin:.3em 0"><summary>{text(title)}</summary>{html}</details>'


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of plain texts: the first rows, and how many there are more."""
    known = list(rows)
    head = "".join(f'<th style="{_CELL}">{text(column)}</th>' for column in columns)
    body = "".join(
        "<tr style='background:none'>"
        + "".join(f'<td style="{_CELL}" dir="auto">{text(cell, LONGEST)}</td>' for cell in row)
        + "</tr>"
        for row in known[:ROWS]
    )
    more = len(known) - ROWS
    rest = f'<div style="{_FAINT}">and {more} more rows</div>' if more > 0 else ""
    style = "border-collapse:collapse;margin:.4em 0;color:inherit;font-size:inherit"
    return (
        f'<div style="overflow-x:auto"><table style="{style}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{rest}"
    )


def mark(number: int) -> str:
    """The number of a citation."""
    return f'<sup style="opacity:.7">[{number}]</sup>'


def place(title: str, path: str, page: int | None, start: int, end: int) -> str:
    """Where a quote stands, as a plain text."""
    where = f", page {page}" if page is not None else ""
    return f"{path or title}{where}, characters {start}–{end}"


def answer_html(answer: Answer) -> str:
    """An answer: its sentences with the numbers of their citations, the quotes, and what was
    selected."""
    numbers: dict[tuple[str, int | None, int, int], int] = {}
    quotes: list[Citation] = []
    sentences = []
    for sentence in answer.sentences:
        marks = ""
        for cited in sentence.citations:
            key = (cited.document, cited.page, cited.start, cited.end)
            if key not in numbers:
                numbers[key] = len(numbers) + 1
                quotes.append(cited)
            marks += mark(numbers[key])
        sentences.append(text(sentence.text) + marks)
    said = " ".join(sentences) or text(answer.text)
    usage = answer.usage
    cost = f"{usage.calls} calls, {usage.input_tokens} + {usage.output_tokens} tokens"
    return block(
        answer.question,
        paragraph(said),
        *(f"<div>{text(note.text)}</div>" for note in answer.notes),
        folded(f"{len(quotes)} quotes", "".join(map(_cited, range(1, len(quotes) + 1), quotes)))
        if quotes
        else "",
        folded(f"{len(answer.selection)} selected", _selection(answer)) if answer.selection else "",
        note=f"mode {answer.mode} · {answer.model} · {cost} · {answer.session}",
    )


def _cited(number: int, cited: Citation) -> str:
    where = place(cited.title, cited.path, cited.page, cited.start, cited.end)
    return quote(cited.quote, f"[{number}] {where}")


def _selection(answer: Answer) -> str:
    rows = [
        (_label(selected.item), f"{selected.score:.2f}", selected.reasoning)
        for selected in answer.selection
    ]
    return table(("selected", "score", "reasoning"), rows)


def _label(item: object) -> str:
    labels = getattr(item, "labels", None)
    return " — ".join(labels) if labels else str(getattr(item, "label", item))
