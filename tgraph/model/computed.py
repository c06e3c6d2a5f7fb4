"""The result of a computed answer as a table, each row with the statements that it rests on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal as Choice
from typing import Protocol

from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from tgraph.model.knowledge import Object

WitnessRole = Choice["rests", "contradicts", "compared", "searched"]


class EvidencePlace(Protocol):
    """A place of a document with its quote, of a question or of a record."""

    @property
    def document(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def page(self) -> int | None: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def quote(self) -> str: ...


@dataclass(frozen=True, slots=True)
class WitnessPlace:
    """The exact characters that state a witness; ``page`` is None in a document without pages."""

    document: str
    title: str
    path: str
    page: int | None
    start: int
    end: int
    quote: str

    @classmethod
    def first_of(cls, places: Sequence[EvidencePlace]) -> WitnessPlace | None:
        """Return the first of several places; None where there is none."""
        for place in places[:1]:
            where = place.document, place.title, place.path, place.page
            return cls(*where, place.start, place.end, place.quote)
        return None


@dataclass(frozen=True, slots=True)
class ResultWitness:
    """A statement that a result depends on, by the IRI and the words of its edge; of a class or a
    name, its bearer. ``rows`` are the numbers of the rows that it is a witness of."""

    item: str
    label: str
    role: WitnessRole
    rows: tuple[int, ...] = ()
    place: WitnessPlace | None = None


@dataclass(frozen=True, slots=True)
class ResultCell:
    """A value of a result: its term in N-Triples, and the text that a person reads."""

    term: str
    text: str


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A row of a result, a cell for each column, with the witnesses of the row."""

    cells: tuple[ResultCell, ...]
    witnesses: tuple[ResultWitness, ...] = ()


@dataclass(frozen=True, slots=True)
class UnchosenQuery:
    """A query that a question might have meant, and why it was not chosen."""

    sparql: str
    likelihood: float
    reasons: str
    rejection: str


@dataclass(frozen=True, slots=True)
class ComputedResult:
    """A question's query with its result; without both where no query was likely enough.

    ``written`` is the query as a person writes it, ``sparql`` as it was evaluated.
    ``compared``, ``searched`` and ``contradicts`` are the witnesses that no row rests on: lesser
    values, what a negation or an empty result looked through, and values of which a row has more
    than one."""

    sparql: str
    written: str
    algebra: str
    likelihood: float
    reasons: str
    columns: tuple[str, ...]
    rows: tuple[ResultRow, ...]
    witnesses: tuple[ResultWitness, ...]
    unchosen: tuple[UnchosenQuery, ...] = ()

    @property
    def excluding(self) -> tuple[ResultWitness, ...]:
        """The witnesses that keep a row out of the result: without one the result is another."""
        return tuple(w for w in self._with_role("rests") if not w.rows)

    @property
    def compared(self) -> tuple[ResultWitness, ...]:
        return self._with_role("compared")

    @property
    def searched(self) -> tuple[ResultWitness, ...]:
        return self._with_role("searched")

    @property
    def contradicts(self) -> tuple[ResultWitness, ...]:
        return self._with_role("contradicts")

    def _with_role(self, role: WitnessRole) -> tuple[ResultWitness, ...]:
        return tuple(witness for witness in self.witnesses if witness.role == role)


def build_rows(
    bindings: Sequence[Mapping[str, str]],
    variables: Sequence[str],
    witnesses: Iterable[ResultWitness],
    read_label: Callable[[NamedNode], str],
) -> tuple[ResultRow, ...]:
    """Return the rows of a result from its bindings, each term in N-Triples by variable; a cell
    without a value is empty."""
    by_row: defaultdict[int, list[ResultWitness]] = defaultdict(list)
    for witness in witnesses:
        for number in witness.rows:
            by_row[number].append(witness)
    return tuple(
        ResultRow(
            tuple(_build_cell(binding.get(name, ""), read_label) for name in variables),
            tuple(by_row[number]),
        )
        for number, binding in enumerate(bindings)
    )


def _build_cell(term: str, read_label: Callable[[NamedNode], str]) -> ResultCell:
    if not term:
        return ResultCell("", "")
    value = parse_term(term)
    return ResultCell(term, read_label(value) if isinstance(value, NamedNode) else value.value)


def parse_term(text: str) -> Object:
    """Return an IRI or a literal from N-Triples. Raise ``ValueError`` for anything else."""
    try:
        (quad,) = parse(f"<urn:x:s> <urn:x:p> {text} .".encode(), RdfFormat.N_TRIPLES)
    except SyntaxError as error:
        raise ValueError(f"no term of RDF: {error}") from error
    if not isinstance(quad.object, NamedNode | Literal):
        raise ValueError("neither an IRI nor a literal")
    return quad.object
