"""HTML templates, in which all text is foreign until escaped.

``notebook.html`` has a macro for each notebook value type, named after the type."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from tgraph.explain.render.answer import is_extractive, quote_groups
from tgraph.explain.render.markup import Style, TextRun, is_code, runs_of
from tgraph.explain.render.wording import format_clock
from tgraph.rendering import (
    describe_confidence,
    describe_short_confidence,
    escape_controls,
    format_count,
    shorten_text,
)
from tgraph.resources import data_file

if TYPE_CHECKING:
    from jinja2 import Environment, Template
    from markupsafe import Markup

ROWS = 50
"""Rows of a table that a notebook shows; the rest is counted."""
LONGEST = 400
"""Characters of a cell that it shows."""


@cache
def _template_environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_show_controls,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
        loader=FunctionLoader(lambda name: data_file(name).read_text("utf-8")),
        auto_reload=False,
    )
    environment.filters |= {"clock": format_clock, "many": format_count, "shortened": shorten_text}
    environment.globals |= {"ROWS": ROWS, "LONGEST": LONGEST, "numbered": number_citations}
    environment.globals |= {
        "describe_confidence": describe_confidence,
        "describe_short_confidence": describe_short_confidence,
    }
    environment.globals |= {"is_extractive": is_extractive, "quote_groups": quote_groups}
    environment.globals |= {"runs": runs_of, "is_code": is_code, "styled": style_run}
    return environment


@cache
def load_template(name: str) -> Template:
    """Return a template: output is escaped, with control and bidirectional characters shown as
    escapes. Undefined names raise errors."""
    return _template_environment().get_template(name)


def _show_controls(said: object) -> object:
    """What a template prints, with control characters shown; markup is safe by now."""
    return (
        escape_controls(said) if isinstance(said, str) and not hasattr(said, "__html__") else said
    )


def render_notebook(value: object) -> str:
    """Return notebook HTML of a value. Raise ``TypeError`` for types without a macro."""
    macros = load_template("notebook.html").module
    for kind in type(value).__mro__:
        if macro := getattr(macros, kind.__name__, None):
            return str(macro(value)).strip()
    raise TypeError(f"A notebook can't show a {type(value).__name__}.")


_BLOCK = "display:block;white-space:pre-wrap;overflow-wrap:anywhere"
_TAGS: dict[Style, str] = {
    "strong": "b", "em": "i", "code": "code", "s": "s", "link": "u",
    "block": f'code style="{_BLOCK}"',
}  # fmt: skip


def style_run(run: TextRun, block: str = _TAGS["block"]) -> Markup:
    """Return a text run as HTML elements that express its styles and have no effects.

    ``block`` is the code block element with its attributes, for pages that forbid inline
    styles."""
    from markupsafe import Markup

    if run.text == "\n":
        return Markup("<br>")
    markup = Markup("{}").format(escape_controls(run.display_text))
    for name in sorted(run.styles):
        tag = block if name == "block" else _TAGS[name]
        markup = Markup(f"<{tag}>{{}}</{tag.partition(' ')[0]}>").format(markup)  # noqa: S704
    return markup


NumberedSources = tuple[list[tuple[Any, list[int]]], list[tuple[int, Any]]]


def number_citations(sentences: Sequence[Any], *, once: bool) -> NumberedSources:
    """Return sentences with citation numbers, and citations by number; with ``once``, citations
    of the same place share a number."""
    quotes: dict[object, tuple[int, Any]] = {}
    numbered_sentences = []
    for sentence in sentences:
        numbers = []
        for cited in sentence.citations:
            place = (cited.document, cited.page, cited.start, cited.end)
            number, _ = quotes.setdefault(place if once else len(quotes), (len(quotes) + 1, cited))
            numbers.append(number)
        numbered_sentences.append((sentence, numbers))
    return numbered_sentences, list(quotes.values())
