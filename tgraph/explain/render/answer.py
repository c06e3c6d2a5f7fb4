"""Answers for terminal readers: the answer first, then supporting quotes, by document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from tgraph.explain.render.markup import ReadQuote, terminal_quote
from tgraph.model import Answer, Citation, Note, Sentence
from tgraph.rendering import (
    collapse_whitespace,
    describe_confidence,
    describe_short_confidence,
    escape_controls,
    one_line,
)

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.text import Text

_FAINT = "dim"
_NUMBER = 5
"""Columns in front of a quote, for its number."""


class QuotedWords(ReadQuote, Protocol):
    """A quotation in an answer or answer record."""

    @property
    def title(self) -> str: ...


class SaidSentence(Protocol):
    """A sentence with citations, in answers or answer records."""

    @property
    def text(self) -> str: ...
    @property
    def citations(self) -> Sequence[QuotedWords]: ...


DocumentName = tuple[str, str]
"""A document's title and path."""
SaidT = TypeVar("SaidT", bound=SaidSentence)


def find_verbatim_quote(sentence: SaidSentence) -> QuotedWords | None:
    """Return a citation identical to the sentence text, or None without a verbatim quote."""
    return next(
        (
            c
            for c in sentence.citations
            if collapse_whitespace(c.quote) == collapse_whitespace(sentence.text)
        ),
        None,
    )


def is_extractive(sentences: Sequence[SaidSentence]) -> bool:
    """Tell whether quotes make up most of an answer's sentences."""
    return sum(find_verbatim_quote(sentence) is not None for sentence in sentences) * 2 > len(
        sentences
    )


def by_document(
    sentences: Sequence[SaidT],
) -> Iterator[tuple[DocumentName | None, list[tuple[int, SaidT]]]]:
    """Yield numbered quotes grouped by document, ordered by first appearance.

    A sentence that is no quote stands alone, and grouping starts anew after it."""
    numbered = list(enumerate(sentences, 1))
    for is_quote, between in groupby(
        numbered, key=lambda each: find_verbatim_quote(each[1]) is not None
    ):
        if not is_quote:
            yield from ((None, [numbered_sentence]) for numbered_sentence in between)
            continue
        groups: dict[DocumentName, list[tuple[int, SaidT]]] = {}
        for number, sentence in between:
            if (cited := find_verbatim_quote(sentence)) is not None:
                groups.setdefault((cited.title, cited.path), []).append((number, sentence))
        yield from groups.items()


@dataclass(frozen=True, slots=True)
class QuoteGroup(Generic[SaidT]):
    """Numbered quotes under their document, or under an unquoted sentence ``said``; ``heads``
    tells whether that sentence is a heading of the quotes."""

    document: DocumentName | None
    said: str
    quotes: tuple[tuple[int, SaidT, QuotedWords], ...]
    heads: bool = False


def quote_groups(sentences: Sequence[SaidT]) -> Iterator[QuoteGroup[SaidT]]:
    """Yield quote groups in layout order: by document for a completely quoted answer, otherwise
    in sentence order.

    Numbers count quotes in display order."""
    number = 0
    for document, heading, heads, quotes in _group_quotes(sentences):
        cited = (
            (sentence, words) for sentence in quotes if (words := find_verbatim_quote(sentence))
        )
        numbered = tuple((n, *pair) for n, pair in enumerate(cited, number + 1))
        number += len(numbered)
        yield QuoteGroup(
            document, "" if heading is None else collapse_whitespace(heading.text), numbered, heads
        )


def _group_quotes(
    sentences: Sequence[SaidT],
) -> Iterator[tuple[DocumentName | None, SaidT | None, bool, list[SaidT]]]:
    if all(find_verbatim_quote(sentence) for sentence in sentences):
        for document, group in by_document(sentences):
            yield document, None, False, [sentence for _, sentence in group]
        return
    groups: list[tuple[SaidT | None, list[SaidT]]] = []
    for sentence in sentences:
        is_unquoted = find_verbatim_quote(sentence) is None
        if is_unquoted or not groups:
            groups.append((sentence if is_unquoted else None, []))
        if not is_unquoted:
            groups[-1][1].append(sentence)
    for place, (heading, quotes) in enumerate(groups):
        yield None, heading, place > 0 and bool(quotes), quotes


def answer_block(answer: Answer) -> Iterator[RenderableType]:
    """Yield lines and grids of a quoting answer: short answer if available, documents with
    numbered quotes, and further notes for readers."""
    if answer.verdict == "uncertain":
        yield _styled_line((answer.introduction, "yellow"))
        yield ""
    if answer.short:
        yield _styled_line(
            (collapse_whitespace(answer.short), "bold"),
            (f"   {describe_short_confidence(answer.short_confidence)}", _FAINT),
        )
        yield ""
    for place, group in enumerate(quote_groups(answer.sentences)):
        if place:
            yield ""
        if group.document is not None:
            yield _DocumentHeading(*group.document)
        elif group.said:
            yield _styled_line((group.said, "bold" if group.heads else ""))
        for number, sentence, _ in group.quotes:
            yield _render_quote(number, sentence, named=group.document is None)
    for note in answer.notes:
        yield ""
        yield _styled_line((_format_note(note), "yellow"))
    if answer.confidence is not None:
        yield ""
        yield _styled_line((describe_confidence(answer.confidence), _FAINT))


@dataclass(frozen=True, slots=True)
class _DocumentHeading:
    """A document title plus path: beside the title if space allows, otherwise below."""

    title: str
    path: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        title, path = one_line(self.title), one_line(_shorten_path(self.path))
        fits = Text(f"{title}  {path}").cell_len <= options.max_width
        yield _styled_line((title, "cyan"), (f"  {path}" if fits else "", _FAINT))
        if path and not fits:
            yield Text(f"{' ' * _NUMBER}{path}", _FAINT, overflow="fold")


def _shorten_path(path: str) -> str:
    """Return the path relative to the current folder, if inside it."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _render_quote(number: int, sentence: Sentence, *, named: bool = False) -> RenderableType:
    """Return a numbered quote with its place below, including the document title if ``named``."""
    from rich.table import Table
    from rich.text import Text

    cited = next(c for c in sentence.citations if c is find_verbatim_quote(sentence))
    words = terminal_quote(cited)
    where = f"{one_line(cited.title)}, {_format_place(cited)}" if named else _format_place(cited)
    words.append(f"\n{where}{_other_sources(sentence, cited)}", _FAINT)
    grid = Table.grid(padding=0)
    grid.add_column(width=_NUMBER, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(f"[{number}]".rjust(_NUMBER - 1), _FAINT), words)
    return grid


def _format_place(cited: Citation) -> str:
    page = f"page {cited.page}, " if cited.page is not None else ""
    return f"{page}characters {cited.start}–{cited.end}"


def _other_sources(sentence: Sentence, cited: Citation) -> str:
    """Return a phrase listing further documents that prove the sentence."""
    here = (cited.document, cited.page, cited.start, cited.end)
    other_citations = {
        (c.document, c.page, c.start, c.end): c.title
        for c in sentence.citations
        if (c.document, c.page, c.start, c.end) != here
    }
    titles = ", ".join(dict.fromkeys(one_line(title) for title in other_citations.values()))
    return f"; also in {titles}" if other_citations else ""


def _format_note(note: Note) -> str:
    """Return note text, prefixed with "Note:" for notes about facts."""
    return collapse_whitespace(f"Note: {note.text}" if note.facts else note.text)


def _styled_line(*parts: tuple[str, str]) -> Text:
    from rich.text import Text

    return Text.assemble(*((escape_controls(text), style) for text, style in parts))
