"""Page quotes: cited characters with surrounding text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tgraph.errors import EvidenceError
from tgraph.model import Quotation
from tgraph.rendering import escape_controls, one_line

if TYPE_CHECKING:
    from rich.text import Text

AROUND = 400
"""Characters on each side of a quote that are shown with it."""
_MORE = "…"


@dataclass(frozen=True, slots=True)
class PageQuote:
    """A page quote with text ``before`` and ``after``, cut between words; ``begins`` and
    ``ends`` tell whether the surrounding text reaches the page's beginning and end."""

    before: str
    quote: str
    after: str
    begins: bool
    ends: bool


def page_quote(text: str, cited: Quotation, around: int = AROUND) -> PageQuote:
    """Return a quote within stored page text, surrounded by at most ``around`` characters on
    both sides. Raise ``EvidenceError`` if the stored text differs."""
    quote = text[cited.start : cited.end]
    if quote != cited.quote:
        place = f"{one_line(cited.path)}, characters {cited.start}–{cited.end}"
        raise EvidenceError(
            f"{place}: the stored text differs from the quote.", "Run `tgraph audit integrity`."
        )
    first, last = max(0, cited.start - around), min(len(text), cited.end + around)
    before, after = text[first : cited.start], text[cited.end : last]
    begins, ends = first == 0, last == len(text)
    return PageQuote(
        before if begins else before[_word_break(before) :].lstrip(),
        quote,
        after if ends else after[: len(after) - _word_break(after[::-1])].rstrip(),
        begins,
        ends,
    )


def _word_break(text: str) -> int:
    """Return the length of a truncated word at the text's beginning; 0 for text without spaces,
    such as scripts without word breaks."""
    return next((place for place, character in enumerate(text) if character.isspace()), 0)


def page_quote_text(found: PageQuote) -> Text:
    """Return a page quote as safe terminal text, emphasised between ⟦ and ⟧."""
    from rich.text import Text

    lead = "" if found.begins else f"{_MORE} "
    ellipsis = "" if found.ends else f" {_MORE}"
    return Text.assemble(
        escape_controls(f"{lead}{found.before}"),
        (escape_controls(f"⟦{found.quote}⟧"), "bold"),
        escape_controls(f"{found.after}{ellipsis}").rstrip(),
    )
