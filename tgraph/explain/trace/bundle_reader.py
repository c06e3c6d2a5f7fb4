"""Bundle statements by subject, keyed by local property names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.store.base import Term

SELECTIONS = (v.edge_selection_iri("", 0)[:-2], v.session_part_iri("item", ""))
"""What the IRIs of selections begin with."""


class BundleReader:
    """A bundle's statements, for reading."""

    def __init__(self, quads: Iterable[Quad]) -> None:
        self._said: dict[str, dict[str, list[Term]]] = {}
        for quad in quads:
            assert isinstance(quad.subject, NamedNode)
            properties = self._said.setdefault(quad.subject.value, {})
            properties.setdefault(local_name(quad.predicate), []).append(quad.object)

    def __iter__(self) -> Iterator[str]:
        """Iterate over all bundle subjects."""
        return iter(self._said)

    def beginning(self, prefix: str) -> list[str]:
        """Return subjects with IRIs beginning with a prefix, sorted by IRI numbers."""
        return sorted((s for s in self._said if s.startswith(prefix)), key=iri_numbers)

    def read_texts(self, subject: str, name: str) -> list[str]:
        """The values of a property, IRIs and literals alike, as texts."""
        terms = self._said.get(subject, {}).get(name, [])
        return [t.value for t in terms if isinstance(t, Literal | NamedNode)]

    def terms(self, subject: str) -> Iterator[str]:
        """Yield IRIs stated as values of a subject."""
        for terms in self._said.get(subject, {}).values():
            yield from (term.value for term in terms if isinstance(term, NamedNode))

    def read_text(self, subject: str, name: str) -> str:
        """Return the first value.

        The text is blank if no value exists."""
        return next(iter(self.read_texts(subject, name)), "")

    def number(self, subject: str, name: str) -> int:
        return int(self.read_text(subject, name) or 0)

    def real(self, subject: str, name: str) -> float:
        return float(self.read_text(subject, name) or 0.0)

    def score(self, subject: str) -> float | None:
        """Return a score, or None without score."""
        return self.real(subject, "score") if self.read_texts(subject, "score") else None

    def nodes(self, subject: str, name: str) -> list[NamedNode]:
        """Return values that are resources."""
        terms = self._said.get(subject, {}).get(name, [])
        return [t for t in terms if isinstance(t, NamedNode)]

    def read_numbered_iris(self, subject: str, name: str) -> list[str]:
        """Return values sorted by IRI numbers."""
        return sorted(self.read_texts(subject, name), key=iri_numbers)

    def parameters(self, subject: str) -> dict[str, str]:
        """Return activity parameters by name."""
        parameter_iris = sorted(self.read_texts(subject, "parameter"))
        return {
            self.read_text(item, "label"): self.read_text(item, "value") for item in parameter_iris
        }

    def read_dropped_counts(self, subject: str) -> dict[str, int]:
        """Return counts of items dropped before reaching a subject, by reason."""
        items = sorted(self.read_texts(subject, "dropped"))
        return {self.read_text(item, "reason"): self.number(item, "count") for item in items}


def kind_of(iri: str) -> str:
    """What sort of thing an IRI of tgraph's names: ``edge``, ``chunk``, ``report``..."""
    return iri.removeprefix(v.URN).removeprefix("prov:").partition(":")[0]


def iri_numbers(iri: str) -> tuple[int, ...]:
    """Return numbers between colons of an IRI, as a sort key."""
    return tuple(int(part) for part in iri.split(":") if part.isdigit())


def local_name(term: NamedNode) -> str:
    """Return the local name: the last part of a term's IRI."""
    return term.value.rpartition("#")[2].rpartition("/")[2]


def keywords_of(said: BundleReader, uuid: str) -> dict[str, tuple[str, ...]]:
    """Return question keywords of a session by level, ``low`` or ``high``."""
    concepts = v.session_part_iri("concepts", uuid)
    levels = {
        level: tuple(said.read_texts(concepts, f"{level}LevelKeyword")) for level in ("low", "high")
    }
    return {level: keywords for level, keywords in levels.items() if keywords}
