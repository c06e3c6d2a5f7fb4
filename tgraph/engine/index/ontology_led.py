"""Ontologies at work: what stands of them leads extraction, and knowledge is derived to fit it.

Knowledge says by which ontologies it was derived (``tg:OntologyFit``). Where that is not what
stands and is set by now, everything is derived anew from the evidence that is there.
"""

from __future__ import annotations

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.engine.index.phase import IndexContext
from tgraph.extract.base import Extractor
from tgraph.index.ontology_fit import OntologyFit
from tgraph.index.touched import Touched, touch_everything
from tgraph.librarian import Librarian
from tgraph.record.ontologies import (
    ontology_quads,
    read_standing,
    standing_fit,
    standing_ontologies,
)
from tgraph.settings import Settings
from tgraph.store.base import Store
from tgraph.store.statements import Statements

FIT = f"{v.URN}ontology-fit"


def led(extractor: Extractor, store: Store, librarian: Librarian, settings: Settings) -> Extractor:
    """The extractor, told the vocabulary of the ontologies that stand if it asks a model."""
    recorded = standing_ontologies(store)
    if not recorded:
        return extractor
    from tgraph.extract.model.extractor import ModelExtractor

    if not isinstance(extractor, ModelExtractor):
        return extractor
    names = tuple(sorted(each.ontology for each in recorded))
    ontology = read_standing(librarian, recorded)
    return extractor.led_by(ontology, names, settings.extract.ontology_limit)


def update_fit(context: IndexContext, touched: Touched) -> OntologyFit | None:
    """The fit of this run, on record; where it is another than that of the knowledge that stands,
    everything is touched."""
    store = context.copy.store
    _keep_decision(context)
    fit = standing_fit(store, context.librarian, context.settings)
    if fit is None and context.settings.ontology.strict:
        context.message("No ontology stands, so `ontology.strict` keeps nothing out.")
    before = set(store.match(NamedNode(FIT), None, None, v.KNOWLEDGE_GRAPH))
    after = _said(fit)
    if before != set(after):
        context.copy.remove(list(before))
        context.copy.add(after)
        touch_everything(store, touched)
    return fit


def _said(fit: OntologyFit | None) -> list[Quad]:
    if fit is None:
        return []
    out = Statements(v.KNOWLEDGE_GRAPH)
    out.add(
        FIT,
        (v.RDF_TYPE, v.tg("OntologyFit")),
        (v.tg("fitKey"), fit.key),
        (v.tg("strict"), fit.strict),
    )
    return out.quads


def _keep_decision(context: IndexContext) -> None:
    """A strictness that is set, and not what was decided before, is a decision: the ontologies are
    on record anew with it, so that later runs and audits that set nothing go by it."""
    said, store = context.settings.ontology.strict, context.copy.store
    for each in standing_ontologies(store) if said is not None else ():
        if said is not None and each.strict != said:
            quads = ontology_quads(
                context.run,
                each.name,
                each.iris,
                each.content,
                context.clock(),
                strict=said,
                previous=(each.ontology,),
            )
            context.copy.add(quads)
