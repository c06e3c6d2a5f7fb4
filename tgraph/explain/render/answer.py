"""An answer as a person reads it in a terminal: what answers first, then the quotes that bear it
out, by document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from tgraph.explain.render.markup import ReadQuote, terminal_quote
from tgraph.model import Answer, Citation, Note, Sentence
from tgraph.rendering import one_line, safe

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.text import Text

_FAINT = "dim"
_NUMBER = 5
"""Columns in front of a quote, for its number."""


class QuotedWords(ReadQuote, Protocol):
    """A quotation, of an answer or of its record."""

    @property
    def title(self) -> str: ...


class SaidSentence(Protocol):
    """A sentence of an answer, or of its record."""

    @property
    def text(self) -> str: ...
    @property
    def citations(self) -> Sequence[QuotedWords]: ...


Document = tuple[str, str]
"""A document's title and path."""
SaidT = TypeVar("SaidT", bound=SaidSentence)


def quoted(sentence: SaidSentence) -> QuotedWords | None:
    """The citation that has the sentence word for word; None where it is in nobody's words."""
    return next((c for c in sentence.citations if _flat(c.quote) == _flat(sentence.text)), None)


def is_extractive(sentences: Sequence[SaidSentence]) -> bool:
    """Whether most of an answer is quoted."""
    return sum(quoted(sentence) is not None for sentence in sentences) * 2 > len(sentences)


def by_document(
    sentences: Sequence[SaidT],
) -> Iterator[tuple[Document | None, list[tuple[int, SaidT]]]]:
    """Quotes with their numbers by document, in the order in which each comes first; what nobody
    said word for word stands by itself, and what follows it is grouped anew."""
    numbered = list(enumerate(sentences, 1))
    for is_quote, between in groupby(numbered, key=lambda each: quoted(each[1]) is not None):
        if not is_quote:
            yield from ((None, [each]) for each in between)
            continue
        found: dict[Document, list[tuple[int, SaidT]]] = {}
        for number, sentence in between:
            if (cited := quoted(sentence)) is not None:
                found.setdefault((cited.title, cited.path), []).append((number, sentence))
        yield from found.items()


@dataclass(frozen=True, slots=True)
class QuoteGroup(Generic[SaidT]):
    """Quotes with their numbers under their document, or under what is ``said`` in nobody's words;
    ``heads`` says whether that is the heading of the quotes."""

    document: Document | None
    said: str
    quotes: tuple[tuple[int, SaidT, QuotedWords], ...]
    heads: bool = False


def quote_groups(sentences: Sequence[SaidT]) -> Iterator[QuoteGroup[SaidT]]:
    """An answer that quotes, as it is laid out: by document where all of it is quoted, else in its
    order. The numbers count the quotes as they are shown."""
    number = 0
    for document, own, heads, quotes in _grouped(sentences):
        cited = ((sentence, words) for sentence in quotes if (words := quoted(sentence)))
        numbered = tuple((n, *pair) for n, pair in enumerate(cited, number + 1))
        number += len(numbered)
        yield QuoteGroup(document, "" if own is None else _flat(own.text), numbered, heads)


def _grouped(
    sentences: Sequence[SaidT],
) -> Iterator[tuple[Document | None, SaidT | None, bool, list[SaidT]]]:
    if all(quoted(sentence) for sentence in sentences):
        for document, group in by_document(sentences):
            yield document, None, False, [sentence for _, sentence in group]
        return
    found: list[tuple[SaidT | None, list[SaidT]]] = []
    for sentence in sentences:
        own = quoted(sentence) is None
        if own or not found:
            found.append((sentence if own else None, []))
        if not own:
            found[-1][1].append(sentence)
    for place, (said, quotes) in enumerate(found):
        yield None, said, place > 0 and bool(quotes), quotes


def answer_block(answer: Answer) -> Iterator[RenderableType]:
    """The lines and grids of an answer that quotes: the answer in a few words where there is one,
    each document with its quotes under their numbers, and what else a reader must know."""
    if answer.short:
        yield _line((_flat(answer.short), "bold"), (_sure(answer), _FAINT))
        yield ""
    for place, group in enumerate(quote_groups(answer.sentences)):
        if place:
            yield ""
        if group.document is not None:
            yield _DocumentHeading(*group.document)
        elif group.said:
            yield _line((group.said, "bold" if group.heads else ""))
        for number, sentence, _ in group.quotes:
            yield _quote(number, sentence, named=group.document is None)
    for note in answer.notes:
        yield ""
        yield _line((_note(note), "yellow"))
    if not answer.short and answer.confidence is not None:
        yield ""
        yield _line((_sure(answer).strip(), _FAINT))


@dataclass(frozen=True, slots=True)
class _DocumentHeading:
    """A document by its title, and where it is: beside it where there is room, else below."""

    title: str
    path: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        title, path = one_line(self.title), one_line(_near(self.path))
        fits = Text(f"{title}  {path}").cell_len <= options.max_width
        yield _line((title, "cyan"), (f"  {path}" if fits else "", _FAINT))
        if path and not fits:
            yield Text(f"{' ' * _NUMBER}{path}", _FAINT, overflow="fold")


def _near(path: str) -> str:
    """The path from the folder that the reader is in, where that leads down to it."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _quote(number: int, sentence: Sentence, *, named: bool = False) -> RenderableType:
    """A quote beside its number, with its place below, by name where no document stands above."""
    from rich.table import Table
    from rich.text import Text

    cited = next(c for c in sentence.citations if c is quoted(sentence))
    words = terminal_quote(cited)
    where = f"{one_line(cited.title)}, {_place(cited)}" if named else _place(cited)
    words.append(f"\n{where}{_others(sentence, cited)}", _FAINT)
    grid = Table.grid(padding=0)
    grid.add_column(width=_NUMBER, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(f"[{number}]".rjust(_NUMBER - 1), _FAINT), words)
    return grid


def _place(cited: Citation) -> str:
    page = f"page {cited.page}, " if cited.page is not None else ""
    return f"{page}characters {cited.start}–{cited.end}"


def _others(sentence: Sentence, cited: Citation) -> str:
    """Where else a sentence is proven."""
    here = (cited.document, cited.page, cited.start, cited.end)
    rest = {
        (c.document, c.page, c.start, c.end): c.title
        for c in sentence.citations
        if (c.document, c.page, c.start, c.end) != here
    }
    named = ", ".join(dict.fromkeys(one_line(title) for title in rest.values()))
    return f"; also in {named}" if rest else ""


def _note(note: Note) -> str:
    """A note about facts is told as one; what is said of the question speaks for itself."""
    return _flat(f"Note: {note.text}" if note.facts else note.text)


def _sure(answer: Answer) -> str:
    return "" if answer.confidence is None else f"   confidence {answer.confidence:.2f}"


def _line(*parts: tuple[str, str]) -> Text:
    from rich.text import Text

    return Text.assemble(*((safe(said), style) for said, style in parts))


def _flat(text: str) -> str:
    return " ".join(text.split())
