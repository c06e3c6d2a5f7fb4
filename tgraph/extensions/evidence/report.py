"""The report of a session: one HTML file that shows the proof and carries the record.

The report needs no network and works without JavaScript. Everything in it comes from documents,
models or users, so the template escapes all of it; a content security policy forbids it to load
anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tgraph.answer.support import PROVEN
from tgraph.explain.render.shown_session import (
    PageText,
    Request,
    at_a_glance,
    idle_items,
    influential_items,
    quoted_groups,
    shown_calls,
    shown_prompts,
    shown_rows,
    shown_sentences,
    uses_of,
)
from tgraph.explain.render.svg import NARROW, WIDE, DrawingFrame, render_svg
from tgraph.explain.render.templates import load_template
from tgraph.explain.render.wording import (
    agents_text,
    elapsed_seconds,
    item_text,
    knowledge_text,
    origin_text,
    verdict_text,
    way_lines,
)
from tgraph.explain.trace.values import Trace
from tgraph.extensions.evidence.layout import layout_figures
from tgraph.extensions.evidence.picture import Picture
from tgraph.rendering import escape_serialised
from tgraph.version import __version__

if TYPE_CHECKING:
    from markupsafe import Markup


def to_html(
    trace: Trace, record: bytes, picture: Picture, page_text: PageText, request: Request
) -> str:
    """Return an HTML session report.

    ``record`` is the session as TriG, ``picture`` the answer's derivation; ``page_text``
    returns stored page text, ``request`` a call's request."""
    from markupsafe import Markup

    sentences = shown_sentences(trace, page_text)
    citations = [place.cited for sentence in sentences for place in sentence.places]
    return load_template("report.html").render(
        trace=trace,
        knowledge=knowledge_text(trace),
        sentences=sentences,
        groups=quoted_groups(sentences),
        influential=influential_items(trace),
        idle=idle_items(trace),
        glance=list(at_a_glance(trace, sentences)) if sentences else [],
        way=list(way_lines(trace)),
        uses=uses_of(trace),
        prompts=shown_prompts(trace),
        calls=shown_calls(trace, request),
        rows=shown_rows(trace, sentences),
        sources=list(dict.fromkeys((cited.title, cited.path) for cited in citations)),
        agents=agents_text(trace),
        words=item_text,
        label=lambda item: item_text(item) if item.kind == "edge" else item.label,
        origin=origin_text,
        verdict=verdict_text,
        seconds=elapsed_seconds,
        proven=PROVEN,
        pictures=[  # tgraph's own, with all words of others escaped
            (frame.name, _draw_panels(picture, frame)) for frame in (WIDE, NARROW)
        ],
        record=Markup(in_script(record.decode())),  # noqa: S704
        version=__version__,
    )


def _draw_panels(picture: Picture, frame: DrawingFrame) -> list[Markup]:
    """Return the panels of a picture as SVG; every word of others is escaped."""
    from markupsafe import Markup

    panels = layout_figures(picture, frame)
    return [Markup(render_svg([panel], frame).decode()) for panel in panels]  # noqa: S704


def in_script(trig: str) -> str:
    """TriG that can't end the script element which carries it, nor begin a comment there.

    ``</``, ``<!`` and control characters stand in literals only, where an escape means the same
    character.
    """
    return escape_serialised(trig, "u").replace("</", "\\u003C/").replace("<!", "\\u003C!")
