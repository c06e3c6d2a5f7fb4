"""Ontology use: standing ontologies guide extraction, and derived knowledge must fit them.

Knowledge records its ontologies (``tg:OntologyFit``). If the record differs from standing
ontologies and current settings, everything is derived anew from existing evidence."""

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


def guide_extractor(
    extractor: Extractor, store: Store, librarian: Librarian, settings: Settings
) -> Extractor:
    """Return an extractor that knows the vocabulary of standing ontologies, if it uses a model."""
    recorded = standing_ontologies(store)
    if not recorded:
        return extractor
    from tgraph.extract.model.extractor import ModelExtractor

    if not isinstance(extractor, ModelExtractor):
        return extractor
    names = tuple(sorted(record.ontology for record in recorded))
    ontology = read_standing(librarian, recorded)
    return extractor.led_by(ontology, names, settings.extract.ontology_limit)


def update_fit(context: IndexContext, touched: Touched) -> OntologyFit | None:
    """Record the ontology fit of this run and return it.

    If it differs from the fit of standing knowledge, everything is marked as touched."""
    store = context.copy.store
    _keep_decision(context)
    fit = standing_fit(store, context.librarian, context.settings)
    if fit is None and context.settings.ontology.strict:
        context.message("No ontology stands, so `ontology.strict` keeps nothing out.")
    before = set(store.match(NamedNode(FIT), None, None, v.KNOWLEDGE_GRAPH))
    after = _fit_quads(fit)
    if before != set(after):
        context.copy.remove(list(before))
        context.copy.add(after)
        touch_everything(store, touched)
    return fit


def _fit_quads(fit: OntologyFit | None) -> list[Quad]:
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
    """Record ontologies again if the strictness setting differs from the recorded decision.

    Later runs and audits without a strictness setting follow the new record."""
    strict, store = context.settings.ontology.strict, context.copy.store
    for ontology in standing_ontologies(store) if strict is not None else ():
        if strict is not None and ontology.strict != strict:
            quads = ontology_quads(
                context.run,
                ontology.name,
                ontology.iris,
                ontology.content,
                context.clock(),
                strict=strict,
                previous=(ontology.ontology,),
            )
            context.copy.add(quads)
