"""RDF syntaxes parsed into triples with their text positions.

A line of N-Triples or N-Quads is a triple; Turtle and TriG are cut into statements
(``turtle``). RDF/XML and JSON-LD have no places worth quoting: their statements are written
down as N-Quads, in document order, as a PDF is rendered as text. Nothing is fetched: neither
contexts of JSON-LD nor entities of XML. An IRI or language tag that is not well formed is reported
and mended; any other error is reported and costs its object, or its line or statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Triple, parse

from tgraph import vocabulary as v
from tgraph.errors import IngestError
from tgraph.extensions.interchange.graphs.isolated_files import unpack_graph
from tgraph.extensions.interchange.graphs.turtle import (
    TriplePiece,
    TurtleStatement,
    find_language_tags,
    split_statements,
)
from tgraph.foreign_bytes import DEEPEST
from tgraph.ingest.base import FileLimits
from tgraph.ingest.parser_process import read_items
from tgraph.ingest.rdf_statements import check_depth, write_line
from tgraph.rendering import collapse_whitespace

RdfTerm = NamedNode | Literal | Triple
OnProblem = Callable[[int, str, bool], None]
"""Is told of what can't be read: the number of its line, why, and whether the term was mended
(otherwise the triple, line or statement is left out)."""


def ignore_problem(line: int, reason: str, mended: bool) -> None:
    """Ignore a problem."""


@dataclass(frozen=True, slots=True)
class Syntax:
    """An RDF syntax; ``rendered`` syntaxes are stored as N-Quads."""

    name: str
    format: RdfFormat
    suffixes: tuple[str, ...]

    @property
    def media_type(self) -> str:
        return self.format.media_type

    @property
    def is_rendered(self) -> bool:
        return self.format in (RdfFormat.RDF_XML, RdfFormat.JSON_LD)


SYNTAXES = (
    Syntax("ntriples", RdfFormat.N_TRIPLES, (".nt",)),
    Syntax("nquads", RdfFormat.N_QUADS, (".nq",)),
    Syntax("turtle", RdfFormat.TURTLE, (".ttl", ".turtle")),
    Syntax("trig", RdfFormat.TRIG, (".trig",)),
    Syntax("rdfxml", RdfFormat.RDF_XML, (".rdf", ".owl")),
    Syntax("jsonld", RdfFormat.JSON_LD, (".jsonld",)),
)
CORE = "application/vnd.msgpack"
"""TrustGraph's knowledge cores, which are rendered as N-Quads too."""


class StatedTriple(NamedTuple):
    """A positioned triple, in a named ``graph`` or without graph ("").

    Blank nodes are already replaced by IRIs."""

    subject: NamedNode
    predicate: NamedNode
    object: RdfTerm
    graph: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RdfText:
    """RDF text in a syntax.

    ``key`` names its blank nodes, ``base`` resolves relative IRIs (blank: relative IRIs are
    errors)."""

    text: str
    syntax: Syntax
    key: str
    base: str = ""

    def read_triples(self, problem: OnProblem = ignore_problem) -> Iterator[StatedTriple]:
        """Iterate over stated triples in text order; repeated calls are allowed."""
        problem_lines = _ProblemLines(self.text, problem)
        chosen = RdfFormat.N_QUADS if self.syntax.is_rendered else self.syntax.format
        skolem = Skolem(self.key)
        if chosen in (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS):
            return _of_lines(self.text, chosen, skolem, problem_lines)
        return _TurtleText(self.text, chosen, skolem, problem_lines, self.base).read_triples()


class Skolem:
    """Blank node naming: by label, or by the position of the stating text."""

    def __init__(self, key: str) -> None:
        self._prefix = f"{v.URN}skolem:{key}:"
        self._names: dict[str, NamedNode] = {}

    def node(self, term: NamedNode | BlankNode) -> NamedNode:
        return self._node_for_label(term.value) if isinstance(term, BlankNode) else term

    def term(self, term: NamedNode | BlankNode | Literal | Triple) -> RdfTerm:
        if isinstance(term, BlankNode):
            return self._node_for_label(term.value)
        if isinstance(term, Triple):
            obj = self.term(term.object)
            return Triple(self.node(term.subject), term.predicate, obj)  # type: ignore[arg-type]
        return term

    def graph(self, name: NamedNode | BlankNode | DefaultGraph) -> str:
        return "" if isinstance(name, DefaultGraph) else self.node(name).value

    def place(self, nodes: Iterable[str], start: int) -> None:
        """Name unlabelled nodes by their statement's position."""
        for number, node in enumerate(nodes):
            self._names[node] = NamedNode(f"{self._prefix}@{start}.{number}")

    def _node_for_label(self, label: str) -> NamedNode:
        node = self._names.get(label)
        if node is None:
            node = self._names[label] = NamedNode(f"{self._prefix}{v.percent_encoded(label)}")
        return node


class _ProblemLines:
    """Problem reporter by line number, for positions in ascending order."""

    def __init__(self, text: str, problem: OnProblem) -> None:
        self._text, self._problem = text, problem
        self._at, self._line = 0, 1

    def problem(self, at: int, reason: str, further: int = 0, *, mended: bool = False) -> None:
        self._line += len(_END.findall(self._text, self._at, at))
        self._at = max(self._at, at)
        self._problem(self._line + further, reason, mended)


_END = re.compile(r"\r\n|\n|\r")
_LINE = re.compile(r"[^\r\n]+")
_BATCH = 1_000
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_TOO_DEEP = f"More than {DEEPEST} brackets are in each other"
_WHERE = re.compile(r"^(?:Parser error )?(?:at|between) line \d+ .*?: ")


# --- terms that are not well formed ---------------------------------------------------------------

_NO_LANGUAGE = "is no language tag and left out"
_QUOTED = 120
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://[^/?#\s]*)?")
_ILL_FORMED = re.compile(r"[\x00-\x20<>\"{}|\\^`\[\]]|%(?![0-9A-Fa-f]{2})")


class _Mender:
    """Mends a text's terms that are not well formed, so that a bad term doesn't cost its triple.

    Characters that an IRI can't have are percent-encoded; bad language tags are left out.
    ``problems`` are pairs of the written term and what was done."""

    def __init__(self) -> None:
        self.problems: list[tuple[str, str]] = []

    def parse(self, text: str, format_: RdfFormat, base: str | None = None) -> list[Quad]:
        """Return the quads of a text; raise ``SyntaxError`` for errors that can't be mended."""
        try:
            return list(parse(text, format_, base_iri=base))
        except (SyntaxError, ValueError) as error:
            quads = self._parse_leniently(text, format_, base)
            if not self.problems:
                raise error
            return quads

    def _parse_leniently(self, text: str, format_: RdfFormat, base: str | None) -> list[Quad]:
        pieces, end = [], 0
        for start, stop in find_language_tags(text):
            if not _is_language(text[start + 1 : stop]):
                self._note(text[start:stop], _NO_LANGUAGE)
                pieces += [text[end:start], " " * (stop - start)]
                end = stop
        quads = parse("".join([*pieces, text[end:]]), format_, base_iri=base, lenient=True)
        return list(map(self.mend_quad, quads))

    def mend_quad(self, quad: Quad) -> Quad:
        """Return a quad with well-formed terms; raise ``SyntaxError`` if a term can't be
        mended."""
        return Quad(*map(self._mend_term, quad))

    def _note(self, written: str, outcome: str) -> None:
        shown = written if len(written) <= _QUOTED else f"{written[:_QUOTED]}…"
        problem = written, collapse_whitespace(f"{shown} {outcome}")
        if problem not in self.problems:
            self.problems.append(problem)

    def _mend_term(self, term: Any) -> Any:
        if isinstance(term, Triple):
            return Triple(*map(self._mend_term, term))
        if isinstance(term, Literal) and term.language:
            if _is_language(term.language):
                return term
            self._note(f"@{term.language}", _NO_LANGUAGE)
            return Literal(term.value)
        if isinstance(term, Literal):
            return Literal(term.value, datatype=self._mend_iri(term.datatype))
        return self._mend_iri(term) if isinstance(term, NamedNode) else term

    def _mend_iri(self, node: NamedNode) -> NamedNode:
        try:
            return NamedNode(node.value)
        except ValueError as error:
            encoded = _encode_iri(node.value)
            try:
                mended = NamedNode(encoded)
            except ValueError:
                raise SyntaxError(f"<{node.value}> is no IRI: {error}") from None
            self._note(
                f"<{node.value}>", f"is no IRI ({error}); what it can't have is percent-encoded"
            )
            return mended


def _is_language(tag: str) -> bool:
    try:
        Literal("", language=tag.partition("--")[0])
    except ValueError:
        return False
    return True


def _encode_iri(value: str) -> str:
    """Return an IRI whose ill-formed characters are percent-encoded: further marks of a
    fragment, too."""
    authority = _AUTHORITY.match(value)
    start = authority.end() if authority else 0
    path, mark, fragment = value[start:].partition("#")
    encoded = [_ILL_FORMED.sub(lambda m: f"%{ord(m[0]):02X}", part) for part in (path, fragment)]
    return f"{value[:start]}{encoded[0]}{mark}{encoded[1].replace('#', '%23')}"


# --- lines ----------------------------------------------------------------------------------------


def _of_lines(
    text: str, chosen: RdfFormat, skolem: Skolem, told: _ProblemLines
) -> Iterator[StatedTriple]:
    spans = _content_spans(text)
    while batch := list(islice(spans, _BATCH)):
        quads = _parsed_whole((text[a:b] for a, b in batch), chosen)
        if len(quads) == len(batch):
            pairs: Iterable[tuple[Quad, tuple[int, int]]] = zip(quads, batch, strict=True)
        else:
            pairs = _line_by_line(text, batch, chosen, told)
        for quad, (start, end) in pairs:
            yield _create_triple(quad, start, end, skolem)


def _content_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield spans of lines with statements, without surrounding white space."""
    for match in _LINE.finditer(text):
        line = match[0]
        start, end = match.span()
        if line[0] in " \t" or line[-1] in " \t":
            start += len(line) - len(line.lstrip(" \t"))
            end -= len(line) - len(line.rstrip(" \t"))
        if start < end and text[start] != "#":
            yield start, end


def _parsed_whole(lines: Iterable[str], chosen: RdfFormat) -> list[Quad]:
    """Return quads parsed from all lines.

    If any line has an error, the list has no quads."""
    joined_text = "\n".join(lines)
    if "<<" in joined_text and any(map(_is_deep, joined_text.split("\n"))):
        return []
    try:
        return list(parse(joined_text, chosen))
    except SyntaxError:
        return []


def _line_by_line(
    text: str, batch: Sequence[tuple[int, int]], chosen: RdfFormat, told: _ProblemLines
) -> Iterator[tuple[Quad, tuple[int, int]]]:
    for start, end in batch:
        if _is_deep(text[start:end]):
            told.problem(start, _TOO_DEEP)
            continue
        mender = _Mender()
        try:
            quads = list(parse(text[start:end], chosen))
        except SyntaxError as error:
            try:
                quads = mender.parse(text[start:end], chosen)
            except SyntaxError:
                told.problem(start, _error_reason(error))
                continue
        for _, reason in mender.problems:
            told.problem(start, reason, mended=True)
        for quad in quads:
            yield quad, (start, end)


def _is_deep(line: str) -> bool:
    """Tell whether triple terms are nested too deeply."""
    return line.count("<<") > DEEPEST and _STRING.sub("", line).count("<<") > DEEPEST


def _error_reason(error: Exception) -> str:
    text = collapse_whitespace(str(getattr(error, "msg", "") or error))
    return _WHERE.sub("", text).rstrip(".") or type(error).__name__


def _create_triple(quad: Quad, start: int, end: int, skolem: Skolem) -> StatedTriple:
    subject, predicate, obj, graph = quad
    assert not isinstance(subject, Triple)  # RDF 1.2 has none
    return StatedTriple(
        skolem.node(subject), predicate, skolem.term(obj), skolem.graph(graph), start, end
    )


# --- Turtle and TriG ------------------------------------------------------------------------------

_LABEL = re.compile(r"_:([^\s\"'<>()\[\]{};,#|~^@\\]+)")
_TOGETHER = 200
_QUOTED_LINES = 400
"""Characters of the lines around a statement that are quoted with it; beyond it is quoted alone."""


class _TurtleText:
    def __init__(
        self, text: str, chosen: RdfFormat, skolem: Skolem, told: _ProblemLines, base: str
    ) -> None:
        self._text, self._format = text, chosen
        self._skolem, self._told = skolem, told
        self._base = base or None
        self._prefixes: dict[str, str] = {}
        self._head = ""

    def read_triples(self) -> Iterator[StatedTriple]:
        batch: list[TurtleStatement] = []
        for statement in split_statements(self._text, graphs=self._format == RdfFormat.TRIG):
            plain = (
                not statement.broken
                and not statement.anonymous
                and all(p.count for p in statement.pieces)
            )
            alike = not batch or batch[0].graph == statement.graph
            if batch and not (
                plain and alike and not statement.directive and len(batch) < _TOGETHER
            ):
                yield from self._read_batch(batch)
                batch = []
            if statement.directive:
                self._read_directive(statement)
            elif plain and statement.pieces:
                batch.append(statement)
            else:
                yield from self._read_single(statement)
        if batch:
            yield from self._read_batch(batch)

    def _read_directive(self, found: TurtleStatement) -> None:
        directive_text = self._text[found.start : found.end]
        try:
            if found.broken:
                raise SyntaxError("A directive stands in a graph, or has no end")
            parser = parse(f"{self._head}{directive_text}", self._format, base_iri=self._base)
            list(parser)
        except (SyntaxError, ValueError) as error:
            self._told.problem(found.start, _error_reason(error))
            return
        self._base = parser.base_iri or self._base
        self._prefixes |= parser.prefixes
        prefix_lines = (
            f"PREFIX {name}: <{namespace}> " for name, namespace in self._prefixes.items()
        )
        self._head = "".join(prefix_lines)

    def _parse_statement(self, said: str, graph: str, mender: _Mender | None = None) -> list[Quad]:
        document_text = f"{self._head}{graph} {{ {said}\n}}" if graph else f"{self._head}{said}\n"
        if mender:
            return mender.parse(document_text, self._format, self._base)
        return list(parse(document_text, self._format, base_iri=self._base))

    def _statement_text(self, found: TurtleStatement) -> str:
        statement_text = self._text[found.start : found.end]
        return (
            statement_text
            if statement_text.endswith(".") or found.broken
            else f"{statement_text} ."
        )

    def _read_batch(self, batch: Sequence[TurtleStatement]) -> Iterator[StatedTriple]:
        pieces = [piece for statement in batch for piece in statement.pieces]
        try:
            quads = self._parse_statement(
                "\n".join(map(self._statement_text, batch)), batch[0].graph
            )
        except (SyntaxError, ValueError):
            quads = []
        if len(quads) == len(pieces):
            yield from self._locate_quads(quads, pieces)
        else:
            for statement in batch:
                yield from self._read_single(statement)

    def _read_single(self, found: TurtleStatement) -> Iterator[StatedTriple]:
        if found.deep:
            self._told.problem(found.start, _TOO_DEEP)
            return
        mender: _Mender | None = None
        try:
            quads = self._parse_statement(self._statement_text(found), found.graph)
            if found.broken:
                raise SyntaxError("The statement has no end, or brackets that don't match")
        except (SyntaxError, ValueError) as error:
            mender = _Mender()
            try:
                if found.broken:
                    raise
                quads = self._parse_statement(self._statement_text(found), found.graph, mender)
            except (SyntaxError, ValueError):
                yield from self._read_pieces(found, error)
                return
        if found.anonymous:
            self._name_nodes(found, quads)
        if mender:
            self._tell_mended(mender, found.start, found.end)
        yield from self._locate_quads(quads, self._shared_out(found, quads, bool(mender)))

    def _read_pieces(self, found: TurtleStatement, error: Exception) -> Iterator[StatedTriple]:
        """Yield the triples of a statement with an error object by object.

        The whole statement is left out if it can't be divided: then its subject has no name."""
        if len(found.pieces) < 2 or any(p.said.startswith("[") for p in found.pieces):
            further = (getattr(error, "lineno", 0) or 1) - 1
            self._told.problem(found.start, _error_reason(error), further)
            return
        for piece in found.pieces:
            mender = _Mender()
            try:
                quads = self._parse_statement(piece.said, found.graph, mender)
            except (SyntaxError, ValueError) as piece_error:
                said = piece.said.removesuffix(" .").rpartition(" ")[2]
                at = max(piece.start, self._text.rfind(said, piece.start, piece.end))
                self._told.problem(at, _error_reason(piece_error))
                continue
            self._tell_mended(mender, piece.start, piece.end)
            if found.anonymous:
                self._name_nodes(replace(found, start=piece.start, end=piece.end), quads)
            yield from self._locate_quads(quads, [piece] * len(quads))

    def _tell_mended(self, mender: _Mender, start: int, end: int) -> None:
        """Report mended terms of a text stretch, in text order."""
        places = [
            (max(start, self._text.find(written, start, end)), reason)
            for written, reason in mender.problems
        ]
        for at, reason in sorted(places):
            self._told.problem(at, reason, mended=True)

    def _shared_out(
        self, found: TurtleStatement, quads: Sequence[Quad], mends: bool
    ) -> list[TriplePiece]:
        """Return the piece matching each quad; the entire statement if uncertain."""
        counts = [self._count_triples(piece, found.graph, mends) for piece in found.pieces]
        if sum(counts) == len(quads):
            return [p for p, n in zip(found.pieces, counts, strict=True) for _ in range(n)]
        return [TriplePiece(found.start, found.end, "", 0)] * len(quads)

    def _count_triples(self, piece: TriplePiece, graph: str, mends: bool) -> int:
        if piece.count or not piece.said:
            return piece.count
        try:
            return len(self._parse_statement(piece.said, graph, _Mender() if mends else None))
        except (SyntaxError, ValueError):
            return 0

    def _name_nodes(self, found: TurtleStatement, quads: Iterable[Quad]) -> None:
        labels = set(_LABEL.findall(self._text, found.start, found.end))
        labels = {label.rstrip(".") for label in labels}
        nodes = dict.fromkeys(node for quad in quads for node in _blank_nodes(quad))
        self._skolem.place((node for node in nodes if node not in labels), found.start)

    def _locate_quads(
        self, quads: Iterable[Quad], pieces: Iterable[TriplePiece]
    ) -> Iterator[StatedTriple]:
        text = self._text
        known_span: tuple[int, int] = (-1, -1)
        span = known_span
        for quad, piece in zip(quads, pieces, strict=True):
            if (piece.start, piece.end) != known_span:
                known_span = piece.start, piece.end
                span = whole_lines(text, *known_span)
            yield _create_triple(quad, *span, self._skolem)


def _blank_nodes(term: Quad | Triple) -> Iterator[str]:
    for part in term:
        if isinstance(part, BlankNode):
            yield part.value
        elif isinstance(part, Triple):
            yield from _blank_nodes(part)


def whole_lines(text: str, start: int, end: int) -> tuple[int, int]:
    """Return bounds of complete lines around a text stretch, without surrounding white space.

    The stretch alone is returned if its lines are long."""
    low, high = max(start - _QUOTED_LINES, 0), end + _QUOTED_LINES
    first = max(text.rfind("\n", low, start), text.rfind("\r", low, start)) + 1
    ends = [at for at in (text.find("\n", end, high), text.find("\r", end, high)) if at >= 0]
    last = min(ends, default=len(text) if high >= len(text) else -1)
    if (not first and low) or last < 0 or last - first > max(_QUOTED_LINES, end - start + 80):
        return start, end
    while first < start and text[first].isspace():
        first += 1
    while last > end and text[last - 1].isspace():
        last -= 1
    return first, last


# --- what is rendered -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RenderedLine:
    """A line of N-Quads, or none, with problems found there: a line number of the file (0: this
    line), a reason, and whether a term was mended."""

    line: str | None
    problems: tuple[tuple[int, str, bool], ...] = ()


def render_quads(
    content: bytes,
    name: str,
    syntax: Syntax,
    base: str,
    limits: FileLimits,
    problem: OnProblem,
) -> str:
    """Return statements of an RDF/XML or JSON-LD file, which may be packed, as N-Quads, one quad
    per line; the isolated process reads them.

    Terms that are not well formed are mended and reported with their line of N-Quads. Content
    after an error is left out and reported. Raise ``IngestError`` if nothing precedes
    the error."""
    lines: list[str] = []
    place = __name__, "rendered_lines"
    for rendered in read_items(
        place, content, name, limits, RenderedLine, syntax=syntax.name, base=base
    ):
        if rendered.line is not None:
            lines.append(rendered.line)
        for line, reason, mended in rendered.problems:
            at = line or len(lines) + (rendered.line is None)
            problem(at, reason, mended)
    return "\n".join(lines) + "\n"


def rendered_lines(
    content: bytes, name: str, limits: FileLimits, *, syntax: str, base: str
) -> Iterator[RenderedLine]:
    """Yield the lines of ``render_quads``."""
    format_ = next(each.format for each in SYNTAXES if each.name == syntax)
    data = unpack_graph(content, name, limits)
    check_depth(data, name, format_)
    names: dict[str, BlankNode] = {}
    is_empty = True
    try:
        for quad in parse(data, format_, base_iri=base or None, lenient=True):
            mender = _Mender()
            try:
                sound = mender.mend_quad(quad)
            except SyntaxError as error:
                reason = f"before this line of N-Quads: {_error_reason(error)}"
                yield RenderedLine(None, ((0, reason, False),))
                continue
            problems = ((0, f"in N-Quads: {reason}", True) for _, reason in mender.problems)
            yield RenderedLine(write_line(_relabel_quad(sound, names), name), tuple(problems))
            is_empty = False
    except (SyntaxError, ValueError) as error:
        if is_empty:
            raise IngestError(
                name, f"It can't be read as {syntax}: {_error_reason(error)}."
            ) from None
        reason = f"{_error_reason(error)}; what follows is left out"
        yield RenderedLine(None, ((getattr(error, "lineno", 0) or 1, reason, False),))


def _relabel_quad(quad: Quad, names: dict[str, BlankNode]) -> Quad:
    """The quad with its blank nodes numbered as they come: parsers label them by chance."""
    for node in _blank_nodes(quad):
        names.setdefault(node, BlankNode(f"b{len(names)}"))
    return Quad(*(_rename_nodes(term, names) for term in quad))


def _rename_nodes(term: Any, names: dict[str, BlankNode]) -> Any:
    if isinstance(term, Triple):
        return Triple(*(_rename_nodes(part, names) for part in term))
    return names[term.value] if isinstance(term, BlankNode) else term
