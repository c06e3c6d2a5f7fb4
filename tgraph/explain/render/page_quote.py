"""A quote in its page: the cited characters between those that stand around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tgraph.errors import EvidenceError
from tgraph.model import Quotation
from tgraph.rendering import one_line, safe

if TYPE_CHECKING:
    from rich.text import Text

AROUND = 400
"""Characters on each side of a quote that are shown with it."""
_MORE = "…"


@dataclass(frozen=True, slots=True)
class PageQuote:
    """The characters of a page that are cited, with what stands ``before`` and ``after`` them, cut
    between words; ``begins`` and ``ends`` say whether that reaches to where the page does."""

    before: str
    quote: str
    after: str
    begins: bool
    ends: bool


def page_quote(text: str, cited: Quotation, around: int = AROUND) -> PageQuote:
    """The quote in the stored text of its page, with so many characters around it at most.
    ``EvidenceError`` where the text says something else there."""
    found = text[cited.start : cited.end]
    if found != cited.quote:
        place = f"{one_line(cited.path)}, characters {cited.start}–{cited.end}"
        raise EvidenceError(
            f"{place}: the stored text is not what was quoted.", "Run `tgraph audit integrity`."
        )
    first, last = max(0, cited.start - around), min(len(text), cited.end + around)
    before, after = text[first : cited.start], text[cited.end : last]
    begins, ends = first == 0, last == len(text)
    return PageQuote(
        before if begins else before[_word_break(before) :].lstrip(),
        found,
        after if ends else after[: len(after) - _word_break(after[::-1])].rstrip(),
        begins,
        ends,
    )


def _word_break(text: str) -> int:
    """How many characters of a word that was cut in two stand at the beginning; none of a text that
    is all one word, such as one in a script without spaces."""
    return next((place for place, each in enumerate(text) if each.isspace()), 0)


def page_quote_text(found: PageQuote) -> Text:
    """The same for a terminal, harmless: the quote stands out, and is between ⟦ and ⟧."""
    from rich.text import Text

    lead = "" if found.begins else f"{_MORE} "
    rest = "" if found.ends else f" {_MORE}"
    return Text.assemble(
        safe(f"{lead}{found.before}"),
        (safe(f"⟦{found.quote}⟧"), "bold"),
        safe(f"{found.after}{rest}").rstrip(),
    )
