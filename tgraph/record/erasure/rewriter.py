"""Erasing text from the record: every statement is kept, with marks where the text was.

A mark is made with a key that is thrown away: equal texts of one erasure have equal marks, and a
mark tells nothing of the text. So statements stay as many as they were, and distinct. The key also
names anew what is named by words (entities, relations, types) or by a digest of words (edges,
evidence, claims). Design, section 3.7.
"""

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


def _terms(names: str) -> tuple[NamedNode, ...]:
    return tuple(map(v.tg, names.split()))


def _prefixes(kinds: str) -> tuple[str, ...]:
    return tuple(f"{v.URN}{kind}:" for kind in kinds.split())


SAID = (
    *_terms("name description keyword alias nameKey aliasKey quote text heading entityType"),
    *_terms("claimType claimStart claimEnd summaryText shortAnswer notAlias"),
    *map(v.dcterms, ("title", "creator", "date")),
    v.oa("exact"),
    v.SKOS_ALT_LABEL,
)
"""The properties that hold what documents say, of what derives from them."""

_ARGUED = frozenset(_terms("reasoning ratingExplanation"))
_SAID = frozenset((*SAID, v.RDFS_LABEL))
_LABELLED = _prefixes(
    "document accession community former-community entity relation type report finding summary"
)
_PUBLIC = _prefixes("agent prompt prov:dropped")
_FOLLOW_UP = f"{v.URN}prov:follow-up:"
_KEYS = frozenset(_terms("contentHash textHash occurrences"))
_TECHNICAL = _KEYS | {
    *_terms("hash previousHash chainHash removedText requestHash inputHash mimeType status mode"),
    *_terms("collection callKind matchMethod claimStatus rejectionReason kind"),
}


class Marks:
    """What takes the place of what is erased, by a secret key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def digest(self, text: str, size: int = 20) -> str:
        data = text.encode("utf-8", "surrogatepass")
        return blake2b(data, key=self._key, digest_size=size).hexdigest()

    def text(self, text: str) -> str:
        return text if is_mark(text) else f"[erased {self.digest(text, _MARK_SIZE)}]"

    def name(self, name: str) -> str:
        """A new IRI of the same kind for an entity, a relation, a type, evidence or a claim."""
        kind = name.removeprefix(v.URN).partition(":")[0]
        if name.startswith(NAMED):
            return self.part(kind, name)
        if is_named(name):
            return self.part("skolem", name)
        return f"{v.URN}{kind}:{self.digest(name)}"

    def part(self, kind: str, text: str) -> str:
        """An IRI in the place of one that is named by words."""
        return f"{v.URN}{kind}:erased-{self.digest(text, _MARK_SIZE)}"


class Rewriter:
    """The same record without the text: a function of each statement alone.

    ``keys`` are the librarian's contents that were rewritten: the new hash by the old.
    """

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
        """The same for what speaks of the document elsewhere: there any word of its own counts."""
        other = copy(self)
        other._strict, other._found = True, {}
        return other

    # --- statements ---

    def quads(self, quads: Iterable[Quad]) -> Iterator[Quad]:
        return map(self.quad, quads)

    def quad(self, quad: Quad) -> Quad:
        """The statement as it stays."""
        subject, predicate, term = quad.subject, quad.predicate, quad.object
        if isinstance(quad.graph_name, DefaultGraph) and quad.triple in self._triples:
            erased = self._triples[quad.triple]
            return Quad(erased.subject, erased.predicate, erased.object, quad.graph_name)
        new = (self._node(subject), self._node(predicate), self._object(quad))
        if new == (subject, predicate, term):
            return quad
        return Quad(*new, quad.graph_name)  # type: ignore[arg-type]

    def lines(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines of a batch, as ``tgraph.record.ledger.batch_lines`` writes them."""
        rest = iter(lines)
        while block := list(islice(rest, _AT_ONCE)):
            statements = b"".join(line[1:] for line in block if line[:1] in b"+-")
            quads = parse(statements, RdfFormat.N_QUADS)
            for line in block:
                sign = line[:1]
                if sign in b"+-":
                    yield sign + to_bytes([self.quad(next(quads))])
                else:
                    key = line[1:].decode("ascii").strip()
                    yield f"={self.keys.get(key, key)}\n".encode()

    def _node(self, term: object) -> object:
        if not isinstance(term, NamedNode):
            return term
        new = self.name(term.value)
        return term if new == term.value else NamedNode(new)

    def name(self, name: str) -> str:
        """The IRI as it stays."""
        known = self._names.get(name)
        if known is not None:
            return known
        if not name.startswith(NAMED) or MARKED_NAME.search(name):
            return name
        if self._traces.find(words_of(name)) is not None:
            self._names[name] = self._marks.name(name)
        return self._names.get(name, name)

    def _object(self, quad: Quad) -> Term:
        term = quad.object
        if isinstance(term, Triple):
            return self._triples.get(term) or self._triple(term)
        if isinstance(term, Literal):
            return self._literal(quad, term)
        return self._node(term)  # type: ignore[return-value]

    def _triple(self, triple: Triple) -> Triple:
        term = triple.object
        if isinstance(term, Literal) and self.tells(term.value):
            term = Literal(self._marks.text(term.value))
        parts = (self._node(triple.subject), self._node(triple.predicate), self._node(term))
        return Triple(*parts)  # type: ignore[arg-type]

    def _erased_triple(self, edge: str, triple: Triple) -> Triple:
        """Nothing of the triple stays, be its parts names that others use too."""
        subject, predicate, term = triple.subject, triple.predicate, triple.object
        assert isinstance(subject, NamedNode)
        parts: list[NamedNode | Literal] = []
        for at, part in enumerate((subject, predicate, term)):
            if isinstance(part, Literal):
                parts.append(Literal(self._marks.text(f"{edge} {part}")))
            else:
                assert isinstance(part, NamedNode)
                known = self._names.get(part.value)
                kind = part.value.removeprefix(v.URN).partition(":")[0]
                if not part.value.startswith(v.URN):  # a property of an ontology
                    kind = "relation" if at == 1 else "entity"
                own = self._marks.part(kind, f"{edge} {at}")
                parts.append(NamedNode(known or own))
        return Triple(*parts)  # type: ignore[arg-type]

    # --- texts ---

    def tells(self, text: str) -> bool:
        """Whether there is a trace of the document in the text."""
        found = self._found.get(text)
        if found is None:
            if len(self._found) >= _REMEMBERED:
                self._found.clear()
            found = self._traces.find(text, strict=self._strict) is not None
            self._found[text] = found
        return found

    def _literal(self, quad: Quad, term: Literal) -> Literal:
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
        text, own = term.value, subject in self._affected.resources
        if predicate == v.RDFS_LABEL:
            if not subject.startswith(_LABELLED) and not is_named(subject):
                return False
            own = own or subject in self._affected.grouped
        elif own and (predicate in _ARGUED or _is_follow_up(subject, predicate)):
            return True
        kept = predicate not in _SAID or self._traces.is_kept(text)
        if not kept and (own or text in self._said):
            return True
        plain = term.language is not None or term.datatype == v.xsd("string")
        return plain and self.tells(text)

    def text(self, text: str, *, whole: bool = False) -> str:
        """A text that the librarian keeps; ``whole`` where all of it comes from the document."""
        named = _NAMED_IN_TEXT.sub(lambda match: self.name(match[0]), text)
        if is_mark(text) or (named.startswith(v.URN) and not _SPACE.search(named)):
            return named
        if whole and not self._traces.is_kept(text):
            return self._marks.text(text)
        return self._marks.text(text) if text in self._said or self.tells(named) else named

    def value(self, value: object, *, whole: bool = False) -> object:
        """JSON that the librarian keeps. An object that speaks of the document does so strictly."""
        if isinstance(value, str):
            return self.text(value, whole=whole)
        if isinstance(value, list):
            return [self.value(item, whole=whole) for item in value]
        if isinstance(value, dict):
            told = not self._strict and any(map(self.tells, _own_strings(value)))
            rewriter = self.strictly() if told else self
            return {key: rewriter.value(item, whole=whole) for key, item in value.items()}
        return value

    def mark(self, text: str) -> str:
        return self._marks.text(text)


def _own_strings(value: object) -> Iterator[str]:
    """The texts in a JSON object, but for those of the objects in it."""
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
    """The words of an IRI that is named by words, or that a graph brought."""
    if not name.startswith(v.URN):
        return v.local_words(name)
    return unquote(name.removeprefix(v.URN).partition(":")[2]).replace("-", " ")
