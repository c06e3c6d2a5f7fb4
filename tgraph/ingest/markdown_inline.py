"""The text of Markdown's inline pieces, each character with its place.

``markdown-it-py`` knows the lines of blocks only. Its inline state is made here to note where it
stood when it made a token: so places come from the parser, and nothing is searched for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline, backtick, image, link
from mdit_py_plugins.admon import admon_plugin
from mdit_py_plugins.footnote import footnote_plugin

if TYPE_CHECKING:
    from markdown_it.token import Token

LinkReferences = dict[str, Any]
InlineRule = Callable[[StateInline, bool], bool]
_TEMPLATE = {"{{": "}}", "{%": "%}"}
# The first line of a container (":::danger Title", "::: {.note title="Title"}") or the last one.
_CONTAINER = re.compile(
    r":{3,}[ \t]*(?:\{[ \t]*\.?[A-Za-z](?:[^}\n]*?[ \t]title=\"([^\"\n]*)\")?[^}\n]*\}"
    r"|[A-Za-z][\w-]*)"
    r"(?:\[([^\n]*)\]|[ \t]+([^\n]*))?"
)
# How web pages turned into Markdown number their pictures.
_IMAGE_NUMBER = re.compile(r"Image \d+(?:: |$)")
# The text of a link to a note, and what may stand before and after it without a space.
_NOTE_LINK = re.compile(r"\[?(?:\d{1,3}|[*†‡§])\]?")
_BEFORE_NOTE, _OPENS = frozenset(".!?,;:…\"'”’»)]"), frozenset("\"'“‘«([")
_STRUCK_TAG = re.compile(r"<(/?)(?:del|s|strike)(?=[\s>])", re.I)
# A longer run of text is read in parts: no paragraph is of this length, and some mark-up costs more
# than its share of a line.
LONGEST = 20_000


class Piece(NamedTuple):
    """Visible text of a token: ``text[i]`` stands at ``places[i]`` of the inline content.

    ``stretch`` is the token's range of content including marks, if larger than ``places``: for
    code, for character replacements, and for marks opening or closing an inline."""

    text: str
    places: Sequence[int]
    kind: str  # text, code, image, break; of what shows nothing the token's type, or the tag
    link: bool = False
    stretch: range = range(0)


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


def _record_stretch(rule: InlineRule) -> InlineRule:
    """Wrap a parser rule, recording in the last token the stretch read by the rule."""

    def record_match(state: StateInline, silent: bool) -> bool:
        start, before = state.pos, len(state.tokens)
        is_match = rule(state, silent)
        if len(state.tokens) > before:
            state.tokens[-1].meta["stretch"] = range(start, state.pos)
        return is_match

    return record_match


def _parse_template(state: StateInline, silent: bool) -> bool:
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


def _parse_container(state: StateBlock, start: int, _end: int, silent: bool) -> bool:
    """Read the first or last line of a container (``:::danger Title``), which shows its title."""
    if state.is_code_block(start):
        return False
    line = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    match = _CONTAINER.fullmatch(line.rstrip(": \t")) if line.startswith(":::") else None
    if match is None and line.strip(": \t"):
        return False
    if silent:
        return True
    title = next(filter(None, match.groups()), "").strip() if match else ""
    if title:
        state.push("admonition_title_open", "", 1)
        token = state.push("inline", "", 0)
        token.map, token.content, token.children = [start, start + 1], title, []
        state.push("admonition_title_close", "", -1)
    state.line = start + 1
    return True


def _accept_link(_address: str) -> bool:
    return True


@cache
def build_parser() -> MarkdownIt:
    """CommonMark with tables, strikethrough, footnotes and admonitions (``!!! tip``, ``:::tip``);
    blocks only, unless it is asked."""
    markdown_parser = (
        MarkdownIt("commonmark")
        .enable(["table", "strikethrough"])
        .use(footnote_plugin, inline=False)
        .use(admon_plugin)
    )
    markdown_parser.block.ruler.before(
        "fence",
        "container",
        _parse_container,
        {"alt": ["paragraph", "reference", "blockquote", "list"]},
    )
    markdown_parser.inline.ruler.before("link", "template", _parse_template)
    for name, rule in (("link", link), ("image", image), ("backticks", backtick)):
        markdown_parser.inline.ruler.at(name, _record_stretch(rule))
    markdown_parser.inline.ruler2.disable("fragments_join")
    # Only the text of a link is read, so none is refused for its address ("javascript:").
    markdown_parser.validateLink = _accept_link  # type: ignore[assignment, method-assign]
    return markdown_parser.disable(["inline", "footnote_tail"])


@cache
def _markup_parser() -> MarkdownIt:
    """Return an HTML parser for tags and entities, ignoring Markdown."""
    markup_parser = MarkdownIt("commonmark", {"html": True})
    markup_parser.inline.ruler.before("html_inline", "template", _parse_template)
    markup_parser.inline.ruler.enableOnly(["text", "template", "html_inline", "entity"])
    markup_parser.inline.ruler2.enableOnly([])
    return markup_parser


def inline_pieces(
    content: str, links: LinkReferences, *, with_struck: bool = False
) -> Iterator[Piece]:
    """Yield the pieces of inline Markdown in order; struck text and links to notes are shown, but
    not read."""
    for start in range(0, len(content), LONGEST):
        part = content[start : start + LONGEST]
        pieces = _visible_pieces(build_parser(), part, links, start)
        yield from pieces if with_struck else _drop_notes(_drop_struck(pieces))


def html_pieces(content: str) -> Iterator[Piece]:
    """Yield visible HTML text, with tags as textless pieces whose ``kind`` is the literal tag,
    without struck text."""
    for start in range(0, len(content), LONGEST):
        part = content[start : start + LONGEST]
        yield from _drop_struck(_visible_pieces(_markup_parser(), part, {}, start))


def _drop_notes(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield pieces without the numbers of notes that follow a sentence's punctuation as links; a
    space stays where the next sentence follows without one."""
    last = ""
    dropped: Piece | None = None
    for piece in pieces:
        if not piece.text:
            yield piece
            continue
        if piece.link and last in _BEFORE_NOTE and _NOTE_LINK.fullmatch(piece.text):
            dropped = piece
            continue
        if dropped is not None and (piece.text[0].isalnum() or piece.text[0] in _OPENS):
            yield dropped._replace(text=" ", places=dropped.places[:1], kind="break")
        dropped = None
        last = piece.text[-1]
        yield piece


def _drop_struck(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield pieces without the text between marks or tags that strike text out; a mark or tag
    that is never closed strikes nothing out."""
    piece_list = list(pieces)
    opened: list[int] = []
    changes: Counter[int] = Counter()
    for place, side in enumerate(map(_strike_side, piece_list)):
        if side > 0:
            opened.append(place)
        elif side < 0 and opened:
            changes[opened.pop()] += 1
            changes[place] -= 1
    depth = 0
    for place, piece in enumerate(piece_list):
        depth += changes[place]
        if not (depth and piece.text):
            yield piece


def _strike_side(piece: Piece) -> int:
    """Return 1 for a piece that begins struck text, -1 for one that ends struck text, else 0."""
    if piece.text:
        return 0
    if piece.kind in ("s_open", "s_close"):
        return 1 if piece.kind == "s_open" else -1
    tag = _STRUCK_TAG.match(piece.kind)
    return 0 if tag is None else -1 if tag[1] else 1


def _visible_pieces(
    md: MarkdownIt, content: str, links: LinkReferences, shift: int
) -> Iterator[Piece]:
    state = _PlacedState(content, md, links, [])
    md.inline.tokenize(state)
    for rule in md.inline.ruler2.getRules(""):
        rule(state)
    linked = 0
    for token in state.tokens:
        linked += (token.type == "link_open") - (token.type == "link_close")
        yield from _pieces_of(token, content, links, shift, linked > 0)


def _pieces_of(
    token: Token, content: str, links: LinkReferences, shift: int, linked: bool
) -> Iterator[Piece]:
    assert token.map is not None
    at, kind, token_text = token.map[0], token.type, token.content
    if kind == "text":
        if token_text:
            yield _text_piece(token_text, at, content, shift, linked)
    elif kind == "text_special":
        yield _special_piece(token, shift + at, linked)
    elif kind == "code_inline":
        yield _code_piece(token, content, shift, linked)
    elif kind == "image":
        yield from _image_pieces(token, links, shift, linked)
    elif kind == "html_inline":
        yield Piece("", (), token_text, linked, range(shift + at, shift + at + len(token_text)))
    elif kind in ("softbreak", "hardbreak"):
        yield Piece(" ", [shift + at], "break", linked)
    elif (stretch := _mark_range(token)) is not None:
        yield Piece("", (), kind, linked, _shift_range(stretch, shift))


def _text_piece(said: str, at: int, content: str, shift: int, linked: bool) -> Piece:
    if content.startswith(said, at):
        return _verbatim_piece(content, at, at + len(said), shift, "text", linked)
    after = content.index(">", at) + 1  # the address of "<https://...>"
    address = _verbatim_piece(content, at + 1, after - 1, shift, "text", linked)
    return address._replace(stretch=range(shift + at, shift + after))


def _special_piece(token: Token, first: int, linked: bool) -> Piece:
    """Return a piece for a backslash-escaped character or an entity."""
    count, length = len(token.content), len(token.markup)
    places: Sequence[int] = [first] * count
    if token.info == "escape":
        places = range(first + length - count, first + length)
    return Piece(token.content, places, "text", linked, range(first, first + length))


def _code_piece(token: Token, content: str, shift: int, linked: bool) -> Piece:
    """Return code between its marks, minus optional padding spaces on both sides."""
    stretch, marks, length = token.meta["stretch"], len(token.markup), len(token.content)
    begin = stretch.start + marks + (len(stretch) - 2 * marks > length)
    code = _verbatim_piece(content, begin, begin + length, shift, "code", linked)
    return code._replace(stretch=_shift_range(stretch, shift))


def _image_pieces(token: Token, links: LinkReferences, shift: int, linked: bool) -> Iterator[Piece]:
    """Yield pieces of a picture's description, between the image marks."""
    stretch = _shift_range(token.meta["stretch"], shift)
    begin = stretch.start + 2
    end = begin + len(token.content)
    number = _IMAGE_NUMBER.match(token.content)
    content = token.content[number.end() :] if number else token.content
    begin = end - len(content)
    yield Piece("", (), "image_open", linked, range(stretch.start, begin))
    for piece in _visible_pieces(build_parser(), content, links, begin):
        yield piece._replace(kind="image") if piece.text else piece
    yield Piece("", (), "image_close", linked, range(end, stretch.stop))


def _mark_range(token: Token) -> range | None:
    """Return the range of an inline's opening or closing mark; None for other tokens."""
    assert token.map is not None
    at, marks = token.map[0], len(token.markup)
    if token.type in ("em_open", "em_close", "s_open", "s_close", "strong_close"):
        return range(at, at + marks)
    if token.type == "strong_open":  # made of the second of its two marks
        return range(at - 1, at + 1)
    if token.type == "link_open" and token.markup != "autolink":
        return range(at - 1, at)
    if token.type == "link_close" and token.markup != "autolink":
        return range(token.map[1], token.meta["stretch"].stop)
    return None


def _shift_range(stretch: range, shift: int) -> range:
    return range(stretch.start + shift, stretch.stop + shift)


def _verbatim_piece(
    content: str, start: int, end: int, shift: int, kind: str, linked: bool
) -> Piece:
    return Piece(content[start:end], range(shift + start, shift + end), kind, linked)
