"""HTML from templates, in which everything is foreign text until it was escaped.

``notebook.html`` has a macro for each type of value that a notebook shows, which bears its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from tgraph.explain.render.answer import is_extractive, quote_groups
from tgraph.explain.render.markup import Style, TextRun, is_code, runs_of
from tgraph.explain.render.wording import clock
from tgraph.rendering import many, safe, shortened
from tgraph.resources import data

if TYPE_CHECKING:
    from jinja2 import Environment, Template
    from markupsafe import Markup

ROWS = 50
"""Rows of a table that a notebook shows; the rest is counted."""
LONGEST = 400
"""Characters of a cell that it shows."""


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
        loader=FunctionLoader(lambda name: data(name).read_text("utf-8")),
        auto_reload=False,
    )
    environment.filters |= {"clock": clock, "many": many, "shortened": shortened}
    environment.globals |= {"ROWS": ROWS, "LONGEST": LONGEST, "numbered": numbered}
    environment.globals |= {"is_extractive": is_extractive, "quote_groups": quote_groups}
    environment.globals |= {"runs": runs_of, "is_code": is_code, "styled": styled}
    return environment


@cache
def template(name: str) -> Template:
    """A template: what it prints is escaped, and its control and bidirectional characters are
    shown as escapes. What it is not told is an error."""
    return _environment().get_template(name)


def _visible(said: object) -> object:
    """What a template prints, with control characters shown; markup is safe by now."""
    return safe(said) if isinstance(said, str) and not hasattr(said, "__html__") else said


def notebook(value: object) -> str:
    """How a notebook shows the value; ``TypeError`` where it has no macro for such."""
    macros = template("notebook.html").module
    for kind in type(value).__mro__:
        if macro := getattr(macros, kind.__name__, None):
            return str(macro(value)).strip()
    raise TypeError(f"A notebook can't show a {type(value).__name__}.")


_BLOCK = "display:block;white-space:pre-wrap;overflow-wrap:anywhere"
_TAGS: dict[Style, str] = {
    "strong": "b", "em": "i", "code": "code", "s": "s", "link": "u",
    "block": f'code style="{_BLOCK}"',
}  # fmt: skip


def styled(run: TextRun, block: str = _TAGS["block"]) -> Markup:
    """A run in the elements that mean its styles; none of them does anything. ``block`` is the
    element of a block of code with its attributes, for pages that allow no style within."""
    from markupsafe import Markup

    if run.text == "\n":
        return Markup("<br>")
    said = Markup("{}").format(safe(run.shown))
    for name in sorted(run.styles):
        tag = block if name == "block" else _TAGS[name]
        said = Markup(f"<{tag}>{{}}</{tag.partition(' ')[0]}>").format(said)  # noqa: S704
    return said


Numbered = tuple[list[tuple[Any, list[int]]], list[tuple[int, Any]]]


def numbered(sentences: Sequence[Any], *, once: bool) -> Numbered:
    """Each sentence with the numbers of its citations, and these by number; those of one place
    share their number where each place is to stand ``once``."""
    quotes: dict[object, tuple[int, Any]] = {}
    found = []
    for sentence in sentences:
        numbers = []
        for cited in sentence.citations:
            place = (cited.document, cited.page, cited.start, cited.end)
            number, _ = quotes.setdefault(place if once else len(quotes), (len(quotes) + 1, cited))
            numbers.append(number)
        found.append((sentence, numbers))
    return found, list(quotes.values())
