"""The catalogue of knowledge as JSON."""

from __future__ import annotations

from typing import Self

from tgraph.engine.json_output import Output
from tgraph.index.catalogue import Catalogue, KnownClass, KnownProperty


class CataloguePropertyOut(Output):
    """A property: how often it is stated, of how many subjects, with which values."""

    property: str
    label: str
    unit: str
    kind: str
    statements: int
    subjects: int
    distinct: int
    values: tuple[str, ...]
    structured: bool

    @classmethod
    def from_property(cls, known: KnownProperty) -> Self:
        """Return the JSON of a property."""
        return cls(
            property=known.iri.value,
            label=known.label,
            unit=known.unit,
            kind=known.kind,
            statements=known.statements,
            subjects=known.subjects,
            distinct=known.distinct,
            values=tuple(value.label for value in known.values),
            structured=known.is_structured,
        )


class CatalogueClassOut(Output):
    """A class: of a type, of the rows of a table, or of what a word names; ``properties`` counts
    the members that have each."""

    kind: str
    key: str
    label: str
    members: int
    type: str
    properties: dict[str, int]

    @classmethod
    def from_class(cls, known: KnownClass) -> Self:
        """Return the JSON of a class."""
        return cls(
            kind=known.kind,
            key=known.key,
            label=known.label,
            members=known.members,
            type=known.type,
            properties={iri.value: count for iri, count in known.properties},
        )


class CatalogueOut(Output):
    """The classes and properties of knowledge."""

    classes: tuple[CatalogueClassOut, ...]
    properties: tuple[CataloguePropertyOut, ...]

    @classmethod
    def from_catalogue(cls, catalogue: Catalogue) -> Self:
        """Return the JSON of a catalogue."""
        return cls(
            classes=tuple(map(CatalogueClassOut.from_class, catalogue.classes)),
            properties=tuple(map(CataloguePropertyOut.from_property, catalogue.properties)),
        )
