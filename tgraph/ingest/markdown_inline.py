"""The text of Markdown's inline pieces, each character with its place.

``markdown-it-py`` knows the lines of blocks only. Its inline state is made here to note where it
stood when it made a token: so places come from the parser, and nothing is searched for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from mdit_py_plugins.footnote import footnote_plugin

if TYPE_CHECKING:
    from markdown_it.token import Token

Links = dict[str, Any]
_TEMPLATE = {"{{": "}}", "{%": "%}"}
# A longer run of text is read in parts: no paragraph is of this length, and some mark-up costs more
# than its share of a line.
LONGEST = 20_000


class Piece(NamedTuple):
    """What a token shows: ``text[i]`` stands at ``places[i]`` of the inline content."""

    text: str
    places: Sequence[int]
    kind: str  # text, code, image, html, break, or the type of a token that shows nothing
    link: bool = False


class _PlacedState(StateInline):
    """An inline state whose tokens know where they begin."""

    begun = 0

    def append_pending(self, text: str) -> None:
        if not self.pending:
            self.begun = self.pos
        super().append_pending(text)

    def pushPending(self) -> Token:  # noqa: N802 (the parser's name)
        token = super().pushPending()
        token.map = [self.begun, -1]
        return token

    def push(self, ttype: str, tag: str, nesting: Any) -> Token:
        token = super().push(ttype, tag, nesting)
        # The markers of one run ("***") are pushed one by one before the position moves on.
        before = self.tokens[-2] if len(self.tokens) > 1 else None
        place = self.pos
        if before is not None and before.type == "text" and before.map and before.map[1] == place:
            place = before.map[0] + len(before.content)
        token.map = [place, self.pos]
        return token


def _template(state: StateInline, silent: bool) -> bool:
    """Tags of templates (``{{< note >}}``, ``{% raw %}``) and attributes (``{#id .class}``)."""
    start, source = state.pos, state.src
    if source[start] != "{":
        return False
    closer = _TEMPLATE.get(source[start : start + 2])
    if closer is None:
        if source[start + 1 : start + 2] not in ("#", ".", ":"):
            return False
        closer = "}"
    if state.html_terminator_last(closer) < start + 2:
        return False
    end = source.find(closer, start + 2, min(state.posMax, start + 2000))
    if end < 0:
        return False
    if not silent:
        state.push("template", "", 0)
    state.pos = end + len(closer)
    return True


@cache
def parser() -> MarkdownIt:
    """CommonMark with tables, strikethrough and footnotes; blocks only, unless it is asked."""
    made = (
        MarkdownIt("commonmark")
        .enable(["table", "strikethrough"])
        .use(footnote_plugin, inline=False)
    )
    made.inline.ruler.before("link", "template", _template)
    made.inline.ruler2.disable("fragments_join")
    return made.disable(["inline", "footnote_tail"])


@cache
def _markup_parser() -> MarkdownIt:
    """Reads HTML: its tags and entities, and nothing of Markdown."""
    made = MarkdownIt("commonmark", {"html": True})
    made.inline.ruler.before("html_inline", "template", _template)
    made.inline.ruler.enableOnly(["text", "template", "html_inline", "entity"])
    made.inline.ruler2.enableOnly([])
    return made


def pieces(content: str, links: Links) -> Iterator[Piece]:
    """What inline Markdown shows, in order."""
    for start in range(0, len(content), LONGEST):
        yield from _shown(parser(), content[start : start + LONGEST], links, start)


def html_pieces(content: str) -> Iterator[Piece]:
    """What HTML shows, its tags as pieces without text whose ``kind`` is the tag as it stands."""
    for start in range(0, len(content), LONGEST):
        yield from _shown(_markup_parser(), content[start : start + LONGEST], {}, start)


def _shown(md: MarkdownIt, content: str, links: Links, shift: int) -> Iterator[Piece]:
    state = _PlacedState(content, md, links, [])
    md.inline.tokenize(state)
    for rule in md.inline.ruler2.getRules(""):
        rule(state)
    linked = 0
    for token in state.tokens:
        linked += (token.type == "link_open") - (token.type == "link_close")
        yield from _pieces_of(token, content, links, shift, linked > 0)


def _pieces_of(
    token: Token, content: str, links: Links, shift: int, linked: bool
) -> Iterator[Piece]:
    assert token.map is not None
    at, kind = token.map[0], token.type
    if kind == "text":
        if not content.startswith(token.content, at):  # the address of "<https://...>"
            yield _verbatim(content, at + 1, content.index(">", at), shift, "text", linked)
        elif token.content:
            yield _verbatim(content, at, at + len(token.content), shift, "text", linked)
    elif kind == "text_special":
        first, count = shift + at, len(token.content)
        if token.info == "escape":
            first += len(token.markup) - count
            places: Sequence[int] = range(first, first + count)
        else:
            places = [first] * count
        yield Piece(token.content, places, "text", linked)
    elif kind == "code_inline":
        begin = at + len(token.markup)
        stripped = content.startswith((" ", "\n"), begin) and not token.content.startswith(" ")
        begin += stripped
        yield _verbatim(content, begin, begin + len(token.content), shift, "code", linked)
    elif kind == "image":
        yield from _nested(token.content, links, shift + at + 2, "image")
    elif kind == "html_inline":
        yield Piece("", (), token.content)
    elif kind in ("softbreak", "hardbreak"):
        yield Piece(" ", [shift + at], "break")


def _verbatim(content: str, start: int, end: int, shift: int, kind: str, linked: bool) -> Piece:
    return Piece(content[start:end], range(shift + start, shift + end), kind, linked)


def _nested(content: str, links: Links, shift: int, kind: str) -> Iterator[Piece]:
    for piece in _shown(parser(), content, links, shift):
        yield piece._replace(kind=kind) if piece.text else piece
