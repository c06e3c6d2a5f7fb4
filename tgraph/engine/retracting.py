"""Retracting a document: it stands no more, knowledge is derived without it, and the answers that
rest on it are called into question. What was recorded stays. Design, sections 3.3 and 3.4.
"""

from __future__ import annotations

from datetime import datetime

from pyoxigraph import Quad

from tgraph import vocabulary as v
from tgraph.engine.clustering import cluster
from tgraph.engine.describing import describe
from tgraph.engine.embedding import embed
from tgraph.engine.indexing import Run, derive
from tgraph.engine.intake import touch_document
from tgraph.engine.reporting import write_reports
from tgraph.engine.situating import situate
from tgraph.engine.workshop import Workshop
from tgraph.index.knowledge import Touched
from tgraph.index.sources import is_retracted, standing_accessions
from tgraph.model import Agent
from tgraph.record.activities import state_invalidation
from tgraph.record.agents import SOFTWARE
from tgraph.record.splits import curation_quads
from tgraph.store.statements import Statements


class RetractionRun(Run):
    """One retraction. Copy, derivation, communities, vectors and commit are those of an index
    run."""

    kind = "curation"
    busy = "An index run is at work on this collection; waiting for it to finish."

    def retract(self, document: str, reason: str, person: str | None) -> bool:
        """Whether something changed: False where the document was retracted already."""
        with self._workshop() as shop:
            if is_retracted(shop.copy.store, document):
                return False
            started = shop.clock()
            touched = Touched()
            touch_document(shop.copy.store, document, touched)
            shop.copy.add(self._ended(shop, document, shop.clock()))
            derived = derive(shop, touched, started)
            describe(shop, derived.undescribed)
            cluster(shop)
            write_reports(shop)
            situate(shop)
            embed(shop, self._ledger)
            agents = [SOFTWARE, *([Agent("person", person)] if person else [])]
            ended = shop.clock()
            shop.copy.add(
                curation_quads(self.iri, "Retraction", reason, started, ended, agents, document)
            )
            self._commit(shop)
            self._publish(shop)
        return True

    def _ended(self, shop: Workshop, document: str, when: datetime) -> list[Quad]:
        out = Statements(v.SOURCE_GRAPH)
        for accession in standing_accessions(shop.copy.store, document):
            state_invalidation(out, accession, self.iri, when)
        return out.quads
