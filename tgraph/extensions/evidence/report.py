"""The report of a session: one HTML file that shows the proof and carries the record.

The report needs no network and works without JavaScript. Everything in it comes from documents,
models or users, so the template escapes all of it; a content security policy forbids it to load
anything.
"""

from __future__ import annotations

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
    shown_sentences,
    uses_of,
)
from tgraph.explain.render.svg import NARROW, WIDE, svg
from tgraph.explain.render.templates import template
from tgraph.explain.render.wording import (
    agents_text,
    item_text,
    knowledge_text,
    origin_text,
    seconds,
    verdict_text,
    way_lines,
)
from tgraph.explain.trace.values import Trace
from tgraph.extensions.evidence.layout import figures
from tgraph.extensions.evidence.picture import Picture
from tgraph.rendering import inert
from tgraph.version import __version__


def to_html(
    trace: Trace, record: bytes, picture: Picture, page_text: PageText, request: Request
) -> str:
    """The report. ``record`` is the session as TriG, ``picture`` how its answer came about;
    ``page_text`` gives the stored text of a page of a document, ``request`` what a call was
    asked."""
    from markupsafe import Markup

    sentences = shown_sentences(trace, page_text)
    shown = [place.cited for sentence in sentences for place in sentence.places]
    return template("report.html").render(
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
        sources=list(dict.fromkeys((cited.title, cited.path) for cited in shown)),
        agents=agents_text(trace),
        words=item_text,
        label=lambda item: item_text(item) if item.kind == "edge" else item.label,
        origin=origin_text,
        verdict=verdict_text,
        seconds=seconds,
        proven=PROVEN,
        pictures=[  # tgraph's own, with all words of others escaped
            (frame.name, [Markup(svg([one], frame).decode()) for one in figures(picture, frame)])  # noqa: S704
            for frame in (WIDE, NARROW)
        ],
        record=Markup(in_script(record.decode())),  # noqa: S704
        version=__version__,
    )


def in_script(trig: str) -> str:
    """TriG that can't end the script element which carries it, nor begin a comment there.

    ``</``, ``<!`` and control characters stand in literals only, where an escape means the same
    character.
    """
    return inert(trig, "u").replace("</", "\\u003C/").replace("<!", "\\u003C!")
