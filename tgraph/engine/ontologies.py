"""Ontologies guiding an open graph: ``KnowledgeGraph.ontologies``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tgraph.engine.progress import OnMessage, OnProgress, ignore_progress

if TYPE_CHECKING:
    from tgraph.engine.change.ontology_curation import AddedOntology
    from tgraph.engine.open_collection import OpenCollection
    from tgraph.extract.ontology import Ontology
    from tgraph.record.ontologies import RecordedOntology


class Ontologies:
    """Add, remove and read ontologies.

    A standing ontology is named by file, IRI or the ontology's own name."""

    def __init__(self, opened: OpenCollection) -> None:
        self._opened = opened

    def read_standing(self) -> list[RecordedOntology]:
        """Return ontologies currently guiding the graph."""
        from tgraph.record.ontologies import standing_ontologies

        return standing_ontologies(self._opened.read())

    def read_terms(self, name: str | None = None) -> Ontology:
        """Return classes and properties of a standing ontology, or of all standing ontologies.

        Raises ``UsageError`` if no standing ontology matches."""
        from tgraph.engine.change.ontology_curation import find_ontology
        from tgraph.record.ontologies import read_standing

        recorded = [find_ontology(self._opened.read(), name)] if name else self.read_standing()
        return read_standing(self._opened.librarian, recorded)

    def add(
        self,
        file: str | Path,
        *,
        reason: str = "",
        progress: OnProgress = ignore_progress,
        message: OnMessage | None = None,
    ) -> AddedOntology:
        """Guide the graph by an ontology (OWL, RDFS, SKOS or SHACL, in any RDF syntax), and map
        existing extractions to its terms.

        Nothing is read again. With the setting ``ontology.strict``, extractions that do not fit
        are kept out of knowledge. An ontology with the IRI of a standing ontology replaces that
        ontology. Raises ``UsageError`` if the file is no ontology, or if the ontology stands
        already."""
        from tgraph.engine.change.ontology_curation import add_ontology

        setup = self._opened.setup(progress, message)
        return add_ontology(self._opened, setup, Path(file), reason)

    def remove(
        self,
        name: str,
        *,
        reason: str,
        progress: OnProgress = ignore_progress,
        message: OnMessage | None = None,
    ) -> RecordedOntology:
        """Remove a standing ontology; knowledge is derived without the ontology.

        Raises ``UsageError`` if no standing ontology matches."""
        from tgraph.engine.change.ontology_curation import OntologyRun

        return OntologyRun(self._opened.setup(progress, message)).remove(name, reason)
