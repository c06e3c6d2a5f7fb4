"""Where the statements of a Turtle or TriG file stand: its text cut into statements and directives,
each statement into its predicates and objects, so that each triple has lines of its own.

Only places are found here; what a statement says, and whether it is well-formed, the parser
decides (pyoxigraph), which reads one statement after the other with the prefixes in force. So an
error costs its statement alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_NAME = r"(?:[^\s\x00-\x20\"'<>()\[\]{};,.#|~^@\\`]|\\[^\s]|\|(?!\}))"
_TOKEN = re.compile(
    rf"""
    (?P<space>[\ \t\r\n]+|\#[^\r\n]*)
    | (?P<string>\"\"\"(?:(?:\"|\"\")?(?:[^\"\\]|\\.))*\"\"\"
        | '''(?:(?:'|'')?(?:[^'\\]|\\.))*'''
        | \"(?:[^\"\\\r\n]|\\.)*\" | '(?:[^'\\\r\n]|\\.)*')
    | (?P<iri><(?!<)[^\x00-\x20<>\"{{}}|^`]*>)
    | (?P<open><<\(|<<|\{{\||[\[(]) | (?P<close>\)>>|>>|\|\}}|[\])])
    | (?P<brace>[{{}}]) | (?P<mark>[;,]) | (?P<stop>\.(?![0-9]))
    | (?P<at>@[A-Za-z]+(?:-[A-Za-z0-9]+)*) | (?P<typed>\^\^) | (?P<reifier>~)
    | (?P<name>\.?{_NAME}(?:{_NAME}|\.+(?={_NAME}))*)
    | (?P<bad>.)
    """,
    re.VERBOSE | re.DOTALL,
)
DEEPEST = 100
"""Brackets in each other that are read: parsers that call themselves end with the process."""
_KEYWORDS = frozenset(("prefix", "base", "version"))
_AT = frozenset(("@prefix", "@base", "@version"))


class TurtleToken(NamedTuple):
    """A token's kind and place; ``text`` of what a statement's structure depends on."""

    kind: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class TriplePiece:
    """A part of a statement that stands for triples of its own: an object, with its predicate and
    its subject where they stand before it. ``start`` and ``end`` are its place, ``said`` is the
    same statement by itself; ``count`` is how many triples it is, 0 where only the parser knows."""

    start: int
    end: int
    said: str
    count: int


@dataclass(frozen=True, slots=True)
class TurtleStatement:
    """A statement, or a ``directive``, at its place, with its end mark. ``graph`` is the name of
    the graph that it is in, as it is written there (empty: none).

    ``pieces`` are in the order of their triples. ``anonymous`` tells whether some of its resources
    have no name. A ``broken`` one has no end, or brackets that don't match; a ``deep`` one has more
    than ``DEEPEST`` in each other."""

    start: int
    end: int
    graph: str = ""
    directive: bool = False
    pieces: tuple[TriplePiece, ...] = ()
    anonymous: bool = False
    broken: bool = False
    deep: bool = False


def statements(text: str, *, graphs: bool = True) -> Iterator[TurtleStatement]:
    """The statements and directives of a TriG text, or of a Turtle text, which has no ``graphs``,
    in their order, without a gap but for white space and comments."""
    return _Splitter(text, graphs).statements()


class _Splitter:
    def __init__(self, text: str, graphs: bool) -> None:
        self._text = text
        self._graphs = graphs
        self._graph = ""
        self._inside = False

    def statements(self) -> Iterator[TurtleStatement]:
        tokens: list[TurtleToken] = []
        depth = deepest = 0
        for match in _TOKEN.finditer(self._text):
            kind = match.lastgroup or "bad"
            if kind == "space":
                continue
            token = TurtleToken(kind, *match.span(), match[0] if kind != "string" else "")
            if kind == "brace" and depth == 0 and self._graphs:
                yield from self._brace(tokens, token)
                tokens = []
                continue
            tokens.append(token)
            depth = max(depth + (kind == "open") - (kind == "close"), 0)
            deepest = max(deepest, depth)
            if kind == "stop" or (depth == 0 and _is_whole_directive(tokens)):
                yield self._statement(tokens, broken=depth > 0, deep=deepest > DEEPEST)
                tokens, depth, deepest = [], 0, 0
        if tokens or self._inside:
            at = TurtleToken("bad", len(self._text), len(self._text), "")
            yield self._statement(tokens or [at], broken=True, deep=deepest > DEEPEST)

    def _brace(self, tokens: list[TurtleToken], brace: TurtleToken) -> Iterator[TurtleStatement]:
        """A graph begins or ends; what stands before its end is a statement without a stop."""
        if brace.text == "}":
            if tokens:
                yield self._statement(tokens, broken=not self._inside)
            elif not self._inside:
                yield self._statement([brace], broken=True)
            self._inside, self._graph = False, ""
            return
        name = tokens[1:] if tokens and tokens[0].text.lower() == "graph" else tokens
        label = self._text[name[0].start : name[-1].end] if name else ""
        keyword = len(name) < len(tokens)
        anonymous = "".join(token.text for token in name) == "[]"
        wrong = len(name) > (2 if anonymous else 1) or (keyword and not name) or self._inside
        if wrong or (name and not anonymous and name[0].kind not in ("iri", "name")):
            yield self._statement([*tokens, brace], broken=True)
        self._graph = f"_:g{brace.start}" if anonymous else label
        self._inside = True

    def _statement(
        self, tokens: Sequence[TurtleToken], *, broken: bool = False, deep: bool = False
    ) -> TurtleStatement:
        start, end = tokens[0].start, tokens[-1].end
        if _directs(tokens[0]):
            return TurtleStatement(start, end, directive=True, broken=broken or self._inside)
        pieces = () if broken or deep else tuple(self._pieces(tokens))
        anonymous = any(token.text in ("[", "(", "<<", "{|", "~") for token in tokens)
        return TurtleStatement(start, end, self._graph, False, pieces, anonymous, broken, deep)

    def _pieces(self, tokens: Sequence[TurtleToken]) -> Iterator[TriplePiece]:
        body = tokens[:-1] if tokens[-1].kind == "stop" else tokens
        subject = _term_length(body)
        simple = subject == 1 or (subject == 2 and body[0].text == "[" and body[1].text == "]")
        if not simple or len(body) < subject + 2:
            yield TriplePiece(tokens[0].start, tokens[-1].end, "", 0)
            return
        named = self._text[body[0].start : body[subject - 1].end]
        first, predicate = body[0].start, ""
        for part in _parts(body[subject:], tokens[-1].end):
            whole = part.tokens
            if part.predicate:
                predicate, whole = self._text[whole[0].start : whole[0].end], whole[1:]
            if not whole:
                continue
            said = self._text[whole[0].start : whole[-1].end]
            first = min(first, part.tokens[0].start)
            yield TriplePiece(first, part.end, f"{named} {predicate} {said} .", _count(whole))
            first = len(self._text)


class _ObjectPart(NamedTuple):
    """An object of a statement, after its predicate where that is its first; ``end`` is that of the
    mark that follows."""

    tokens: Sequence[TurtleToken]
    predicate: bool
    end: int


def _parts(tokens: Sequence[TurtleToken], end: int) -> Iterator[_ObjectPart]:
    own: list[TurtleToken] = []
    depth, predicate = 0, True
    for token in tokens:
        depth += (token.kind == "open") - (token.kind == "close")
        if depth == 0 and token.kind == "mark":
            if own:
                yield _ObjectPart(own, predicate, token.end)
            own, predicate = [], token.text == ";" or (predicate and not own)
        else:
            own.append(token)
    if own:
        yield _ObjectPart(own, predicate, end)


def _term_length(tokens: Sequence[TurtleToken]) -> int:
    """How many tokens the first term takes."""
    depth = 0
    for length, token in enumerate(tokens, 1):
        depth += (token.kind == "open") - (token.kind == "close")
        if depth <= 0:
            return length
    return len(tokens)


def _count(tokens: Sequence[TurtleToken]) -> int:
    """The triples that an object stands for: one for a name, an IRI or a literal."""
    first, kinds = tokens[0], [token.kind for token in tokens[1:]]
    plain = first.kind in ("iri", "name", "string")
    literal = first.kind == "string" and kinds in (["at"], ["typed", "iri"], ["typed", "name"])
    return int((plain and not kinds) or literal)


def _directs(token: TurtleToken) -> bool:
    return token.text in _AT or (token.kind == "name" and token.text.lower() in _KEYWORDS)


def _is_whole_directive(tokens: Sequence[TurtleToken]) -> bool:
    """Whether a directive without an end mark is complete: SPARQL's."""
    first = tokens[0]
    if first.kind != "name" or not _directs(first):
        return False
    return len(tokens) == (3 if first.text.lower() == "prefix" else 2)
