"""Statement positions in Turtle and TriG files: text cut into statements and directives,
statements into predicates and objects, so that each triple has lines to quote.

Only places are found here; content and well-formedness of a statement are decided by the parser
(pyoxigraph), which reads one statement after the other with the prefixes in force. So an error
costs its statement alone, or only its object."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tgraph.foreign_bytes import DEEPEST

_NAME = r"(?:[^\s\x00-\x20\"'<>()\[\]{};,.#|~^@\\`]|\\[^\s]|\|(?!\}))"
_TOKEN = re.compile(
    rf"""
    (?P<space>[\ \t\r\n]+|\#[^\r\n]*)
    | (?P<string>\"\"\"(?:(?:\"|\"\")?(?:[^\"\\]|\\.))*\"\"\"
        | '''(?:(?:'|'')?(?:[^'\\]|\\.))*'''
        | \"(?:[^\"\\\r\n]|\\.)*\" | '(?:[^'\\\r\n]|\\.)*')
    | (?P<iri><(?!<)[^<>\r\n]*>)
    | (?P<open><<\(|<<|\{{\||[\[(]) | (?P<close>\)>>|>>|\|\}}|[\])])
    | (?P<brace>[{{}}]) | (?P<mark>[;,]) | (?P<stop>\.(?![0-9]))
    | (?P<at>@[A-Za-z]+(?:-[A-Za-z0-9]+)*) | (?P<typed>\^\^) | (?P<reifier>~)
    | (?P<name>\.?{_NAME}(?:{_NAME}|\.+(?={_NAME}))*)
    | (?P<bad>.)
    """,
    re.VERBOSE | re.DOTALL,
)
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
    """A statement part standing for separate triples: an object, with preceding predicate and
    subject if adjacent.

    ``start`` and ``end`` are its place, ``said`` is the same statement by itself; ``count`` is
    the triple count, 0 if only the parser knows."""

    start: int
    end: int
    said: str
    count: int


@dataclass(frozen=True, slots=True)
class TurtleStatement:
    """A statement or ``directive`` with position, including its end mark; ``graph`` is the
    written graph name (blank: none).

    ``pieces`` are in triple order. ``anonymous`` marks resources without names. A ``broken``
    statement has no end, or brackets that don't match; a ``deep`` statement nests more than
    ``DEEPEST`` levels."""

    start: int
    end: int
    graph: str = ""
    directive: bool = False
    pieces: tuple[TriplePiece, ...] = ()
    anonymous: bool = False
    broken: bool = False
    deep: bool = False


_TAG = re.compile(r"@[^\s,;.()\[\]{}|]+")


def find_language_tags(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of what stands as language tags behind strings, ``@`` included."""
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "string" and (tag := _TAG.match(text, match.end())):
            yield tag.span()


def split_statements(text: str, *, graphs: bool = True) -> Iterator[TurtleStatement]:
    """Yield statements and directives in text order: TriG, or Turtle without ``graphs``.

    The statements leave no gap except white space and comments."""
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
                yield from self._read_brace(tokens, token)
                tokens = []
                continue
            tokens.append(token)
            depth = max(depth + (kind == "open") - (kind == "close"), 0)
            deepest = max(deepest, depth)
            if kind == "stop" or (depth == 0 and _is_whole_directive(tokens)):
                yield self._create_statement(tokens, broken=depth > 0, deep=deepest > DEEPEST)
                tokens, depth, deepest = [], 0, 0
        if tokens or self._inside:
            at = TurtleToken("bad", len(self._text), len(self._text), "")
            yield self._create_statement(tokens or [at], broken=True, deep=deepest > DEEPEST)

    def _read_brace(
        self, tokens: list[TurtleToken], brace: TurtleToken
    ) -> Iterator[TurtleStatement]:
        """Begin or end a graph; tokens before a graph's end form a statement without stop."""
        if brace.text == "}":
            if tokens:
                yield self._create_statement(tokens, broken=not self._inside)
            elif not self._inside:
                yield self._create_statement([brace], broken=True)
            self._inside, self._graph = False, ""
            return
        name = tokens[1:] if tokens and tokens[0].text.lower() == "graph" else tokens
        label = self._text[name[0].start : name[-1].end] if name else ""
        keyword = len(name) < len(tokens)
        anonymous = "".join(token.text for token in name) == "[]"
        wrong = len(name) > (2 if anonymous else 1) or (keyword and not name) or self._inside
        if wrong or (name and not anonymous and name[0].kind not in ("iri", "name")):
            yield self._create_statement([*tokens, brace], broken=True)
        self._graph = f"_:g{brace.start}" if anonymous else label
        self._inside = True

    def _create_statement(
        self, tokens: Sequence[TurtleToken], *, broken: bool = False, deep: bool = False
    ) -> TurtleStatement:
        start, end = tokens[0].start, tokens[-1].end
        if _is_directive(tokens[0]):
            return TurtleStatement(start, end, directive=True, broken=broken or self._inside)
        pieces = () if broken or deep else tuple(self._split_pieces(tokens))
        anonymous = any(token.text in ("[", "(", "<<", "{|", "~") for token in tokens)
        return TurtleStatement(start, end, self._graph, False, pieces, anonymous, broken, deep)

    def _split_pieces(self, tokens: Sequence[TurtleToken]) -> Iterator[TriplePiece]:
        body = tokens[:-1] if tokens[-1].kind == "stop" else tokens
        subject = _term_length(body)
        simple = subject == 1 or (subject == 2 and body[0].text == "[" and body[1].text == "]")
        if not simple or len(body) < subject + 2:
            yield TriplePiece(tokens[0].start, tokens[-1].end, "", 0)
            return
        subject_text = self._text[body[0].start : body[subject - 1].end]
        first, predicate = body[0].start, ""
        for part in _split_parts(body[subject:], tokens[-1].end):
            part_tokens = part.tokens
            if part.predicate:
                predicate, part_tokens = (
                    self._text[part_tokens[0].start : part_tokens[0].end],
                    part_tokens[1:],
                )
            if not part_tokens:
                continue
            object_text = self._text[part_tokens[0].start : part_tokens[-1].end]
            first = min(first, part.tokens[0].start)
            yield TriplePiece(
                first,
                part.end,
                f"{subject_text} {predicate} {object_text} .",
                _count_triples(part_tokens),
            )
            first = len(self._text)


class _ObjectPart(NamedTuple):
    """A statement's object, plus its predicate if the object follows directly; ``end`` is the
    end of the closing mark."""

    tokens: Sequence[TurtleToken]
    predicate: bool
    end: int


def _split_parts(tokens: Sequence[TurtleToken], end: int) -> Iterator[_ObjectPart]:
    part_tokens: list[TurtleToken] = []
    depth, predicate = 0, True
    for token in tokens:
        depth += (token.kind == "open") - (token.kind == "close")
        if depth == 0 and token.kind == "mark":
            if part_tokens:
                yield _ObjectPart(part_tokens, predicate, token.end)
            part_tokens, predicate = [], token.text == ";" or (predicate and not part_tokens)
        else:
            part_tokens.append(token)
    if part_tokens:
        yield _ObjectPart(part_tokens, predicate, end)


def _term_length(tokens: Sequence[TurtleToken]) -> int:
    """Return the token count of the leading term."""
    depth = 0
    for length, token in enumerate(tokens, 1):
        depth += (token.kind == "open") - (token.kind == "close")
        if depth <= 0:
            return length
    return len(tokens)


def _count_triples(tokens: Sequence[TurtleToken]) -> int:
    """Return an object's triple count: 1 for names, IRIs and literals, otherwise 0."""
    first, kinds = tokens[0], [token.kind for token in tokens[1:]]
    plain = first.kind in ("iri", "name", "string")
    literal = first.kind == "string" and kinds in (["at"], ["typed", "iri"], ["typed", "name"])
    return int((plain and not kinds) or literal)


def _is_directive(token: TurtleToken) -> bool:
    return token.text in _AT or (token.kind == "name" and token.text.lower() in _KEYWORDS)


def _is_whole_directive(tokens: Sequence[TurtleToken]) -> bool:
    """Tell whether a directive without end mark (SPARQL style) is complete."""
    first = tokens[0]
    if first.kind != "name" or not _is_directive(first):
        return False
    return len(tokens) == (3 if first.text.lower() == "prefix" else 2)
