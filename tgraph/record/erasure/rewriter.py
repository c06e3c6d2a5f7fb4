"""Erasing text from the record: every statement is kept, with marks replacing the erased text.

Marks use a key discarded afterwards: equal texts of the same erasure have equal marks, and a
mark reveals nothing about the text. So the number of statements stays equal, and statements
stay distinct. The key also renames resources named by words (entities, relations, types) or by
a digest of words (edges, evidence, claims). Design, section 3.7."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from copy import copy
from hashlib import blake2b
from itertools import islice
from urllib.parse import unquote

from pyoxigraph import (
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    RdfFormat,
    Triple,
    parse,
)

from tgraph import vocabulary as v
from tgraph.index.sources import is_mark
from tgraph.record.erasure.scope import MARKED_NAME, NAMED, ErasureScope, is_named
from tgraph.record.erasure.traces import Traces
from tgraph.store.base import Term
from tgraph.store.statements import edge_of, to_bytes

_MARK_SIZE = 8
_AT_ONCE = 5_000
_REMEMBERED = 100_000


def _make_terms(names: str) -> tuple[NamedNode, ...]:
    return tuple(map(v.tg, names.split()))


def _make_prefixes(kinds: str) -> tuple[str, ...]:
    return tuple(f"{v.URN}{kind}:" for kind in kinds.split())


SAID = (
    *_make_terms("name description keyword alias nameKey aliasKey quote text heading entityType"),
    *_make_terms("claimType claimStart claimEnd summaryText shortAnswer notAlias"),
    *_make_terms("readingWarning lossPlace lossReason"),
    *_make_terms("calendarDate dateNote"),
    *map(v.dcterms, ("title", "creator", "date")),
    v.oa("exact"),
    v.SKOS_ALT_LABEL,
)
"""The properties that hold what documents say, of what derives from them."""

_ARGUED = frozenset(_make_terms("reasoning ratingExplanation result"))
_SAID = frozenset((*SAID, v.RDFS_LABEL))
_LABELLED = _make_prefixes(
    "document accession community former-community entity relation type report finding summary"
)
_PUBLIC = _make_prefixes("agent prompt prov:dropped")
_FOLLOW_UP = f"{v.URN}prov:follow-up:"
_KEYS = frozenset(_make_terms("contentHash textHash layoutHash occurrences"))
_TECHNICAL = _KEYS | {
    *_make_terms(
        "hash previousHash chainHash removedText requestHash inputHash mimeType status mode"
    ),
    *_make_terms("collection callKind matchMethod claimStatus rejectionReason kind"),
}


class Marks:
    """Replacements for erased text, generated with a secret key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def digest(self, text: str, size: int = 20) -> str:
        data = text.encode("utf-8", "surrogatepass")
        return blake2b(data, key=self._key, digest_size=size).hexdigest()

    def text(self, text: str) -> str:
        return text if is_mark(text) else f"[erased {self.digest(text, _MARK_SIZE)}]"

    def name(self, name: str) -> str:
        """Return a new IRI of the same kind for an entity, relation, type, evidence or claim."""
        kind = name.removeprefix(v.URN).partition(":")[0]
        if name.startswith(NAMED):
            return self.part(kind, name)
        if is_named(name):
            return self.part("skolem", name)
        return f"{v.URN}{kind}:{self.digest(name)}"

    def part(self, kind: str, text: str) -> str:
        """Return an IRI replacing an IRI named by words."""
        return f"{v.URN}{kind}:erased-{self.digest(text, _MARK_SIZE)}"


class Rewriter:
    """A rewriter removing the text from the record; each result depends on a single statement.

    ``keys`` maps old hashes of rewritten librarian contents to new hashes."""

    def __init__(
        self, affected: ErasureScope, traces: Traces, marks: Marks, said: Iterable[str] = ()
    ) -> None:
        self.keys: dict[str, str] = {}
        self._affected = affected
        self._traces = traces
        self._marks = marks
        self._said = {text for text in said if not traces.is_kept(text)}
        self._names: dict[str, str] = {}
        self._triples: dict[Triple, Triple] = {}
        self._found: dict[str, bool] = {}
        self._strict = False
        for name in (*affected.evidence, *affected.claims):
            self._names[name] = marks.name(name)
        for name in affected.names:
            if not traces.is_kept(words_of(name)):
                self._names[name] = marks.name(name)
        for edge, triple in affected.edges.items():
            self._triples[triple] = self._erased_triple(edge, triple)
            self._names[edge] = edge_of(self._triples[triple])

    def strictly(self) -> Rewriter:
        """Return a strict copy of the rewriter: any word found only in the document counts as a
        trace.

        The strict rewriter serves statements elsewhere about the document."""
        rewriter = copy(self)
        rewriter._strict, rewriter._found = True, {}
        return rewriter

    # --- statements ---

    def quads(self, quads: Iterable[Quad]) -> Iterator[Quad]:
        return map(self.quad, quads)

    def quad(self, quad: Quad) -> Quad:
        """Return the rewritten statement."""
        subject, predicate, term = quad.subject, quad.predicate, quad.object
        if isinstance(quad.graph_name, DefaultGraph) and quad.triple in self._triples:
            erased = self._triples[quad.triple]
            return Quad(erased.subject, erased.predicate, erased.object, quad.graph_name)
        new = (
            self._rewrite_node(subject),
            self._rewrite_node(predicate),
            self._rewrite_object(quad),
        )
        if new == (subject, predicate, term):
            return quad
        return Quad(*new, quad.graph_name)  # type: ignore[arg-type]

    def lines(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines of a batch, as ``tgraph.record.ledger.batch_lines`` writes them."""
        remaining_lines = iter(lines)
        while block := list(islice(remaining_lines, _AT_ONCE)):
            statements = b"".join(line[1:] for line in block if line[:1] in b"+-")
            quads = parse(statements, RdfFormat.N_QUADS)
            for line in block:
                sign = line[:1]
                if sign in b"+-":
                    yield sign + to_bytes([self.quad(next(quads))])
                else:
                    key = line[1:].decode("ascii").strip()
                    yield f"={self.keys.get(key, key)}\n".encode()

    def _rewrite_node(self, term: object) -> object:
        if not isinstance(term, NamedNode):
            return term
        new = self.name(term.value)
        return term if new == term.value else NamedNode(new)

    def name(self, name: str) -> str:
        """Return the rewritten IRI."""
        new_name = self._names.get(name)
        if new_name is not None:
            return new_name
        if not name.startswith(NAMED) or MARKED_NAME.search(name):
            return name
        if self._traces.find(words_of(name)) is not None:
            self._names[name] = self._marks.name(name)
        return self._names.get(name, name)

    def _rewrite_object(self, quad: Quad) -> Term:
        term = quad.object
        if isinstance(term, Triple):
            return self._triples.get(term) or self._rewrite_triple(term)
        if isinstance(term, Literal):
            return self._rewrite_literal(quad, term)
        return self._rewrite_node(term)  # type: ignore[return-value]

    def _rewrite_triple(self, triple: Triple) -> Triple:
        term = triple.object
        if isinstance(term, Literal) and self.tells(term.value):
            term = Literal(self._marks.text(term.value))
        parts = (
            self._rewrite_node(triple.subject),
            self._rewrite_node(triple.predicate),
            self._rewrite_node(term),
        )
        return Triple(*parts)  # type: ignore[arg-type]

    def _erased_triple(self, edge: str, triple: Triple) -> Triple:
        """Return an erased triple retaining no original part, even parts named by other
        documents."""
        subject, predicate, term = triple.subject, triple.predicate, triple.object
        assert isinstance(subject, NamedNode)
        parts: list[NamedNode | Literal] = []
        for at, part in enumerate((subject, predicate, term)):
            if isinstance(part, Literal):
                parts.append(Literal(self._marks.text(f"{edge} {part}")))
            else:
                assert isinstance(part, NamedNode)
                new_name = self._names.get(part.value)
                kind = part.value.removeprefix(v.URN).partition(":")[0]
                if not part.value.startswith(v.URN):  # a property of an ontology
                    kind = "relation" if at == 1 else "entity"
                part_iri = self._marks.part(kind, f"{edge} {at}")
                parts.append(NamedNode(new_name or part_iri))
        return Triple(*parts)  # type: ignore[arg-type]

    # --- texts ---

    def tells(self, text: str) -> bool:
        """Return whether the text contains a trace of the document."""
        has_trace = self._found.get(text)
        if has_trace is None:
            if len(self._found) >= _REMEMBERED:
                self._found.clear()
            has_trace = self._traces.find(text, strict=self._strict) is not None
            self._found[text] = has_trace
        return has_trace

    def _rewrite_literal(self, quad: Quad, term: Literal) -> Literal:
        predicate = quad.predicate
        if predicate in _KEYS and term.value in self.keys:
            return Literal(self.keys[term.value])
        subject = quad.subject.value if isinstance(quad.subject, NamedNode | BlankNode) else ""
        if predicate in _TECHNICAL or subject.startswith(_PUBLIC) or is_mark(term.value):
            return term
        if self._is_erased(subject, predicate, term):
            return Literal(self._marks.text(term.value))
        return term

    def _is_erased(self, subject: str, predicate: NamedNode, term: Literal) -> bool:
        text, is_own = term.value, subject in self._affected.resources
        if predicate == v.RDFS_LABEL:
            if not subject.startswith(_LABELLED) and not is_named(subject):
                return False
            is_own = is_own or subject in self._affected.grouped
        elif is_own and (predicate in _ARGUED or _is_follow_up(subject, predicate)):
            return True
        is_protected = predicate not in _SAID or self._traces.is_kept(text)
        if not is_protected and (is_own or text in self._said):
            return True
        plain = term.language is not None or term.datatype == v.xsd("string")
        return plain and self.tells(text)

    def text(self, text: str, *, whole: bool = False) -> str:
        """Return a librarian text, rewritten; ``whole`` means the complete text comes from the
        document."""
        new_text = _NAMED_IN_TEXT.sub(lambda match: self.name(match[0]), text)
        if is_mark(text) or (new_text.startswith(v.URN) and not _SPACE.search(new_text)):
            return new_text
        if whole and not self._traces.is_kept(text):
            return self._marks.text(text)
        return self._marks.text(text) if text in self._said or self.tells(new_text) else new_text

    def value(self, value: object, *, whole: bool = False) -> object:
        """Return a rewritten JSON value from the librarian.

        Objects mentioning the document are rewritten strictly."""
        if isinstance(value, str):
            return self.text(value, whole=whole)
        if isinstance(value, list):
            return [self.value(item, whole=whole) for item in value]
        if isinstance(value, dict):
            has_traces = not self._strict and any(map(self.tells, _own_strings(value)))
            rewriter = self.strictly() if has_traces else self
            return {key: rewriter.value(item, whole=whole) for key, item in value.items()}
        return value

    def mark(self, text: str) -> str:
        return self._marks.text(text)


def _own_strings(value: object) -> Iterator[str]:
    """Yield the texts in a JSON object, excluding texts of nested objects."""
    items = value.values() if isinstance(value, dict) else value
    for item in items if isinstance(items, Iterable) else ():
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            yield from _own_strings(item)


def _is_follow_up(subject: str, predicate: NamedNode) -> bool:
    return predicate == v.tg("query") and subject.startswith(_FOLLOW_UP)


_SPACE = re.compile(r"\s")
_NAMED_IN_TEXT = re.compile(
    rf"(?:{v.URN}(?:entity|relation|type|edge|evidence|claim|skolem):|https?://|urn:(?!trustgraph:))"
    r"[^\s\"'<>\\,\])]+"
)


def words_of(name: str) -> str:
    """Return the words of an IRI named by words or supplied by an imported graph."""
    if not name.startswith(v.URN):
        return v.local_words(name)
    return unquote(name.removeprefix(v.URN).partition(":")[2]).replace("-", " ")
