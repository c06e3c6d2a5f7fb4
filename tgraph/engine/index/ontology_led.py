"""Ontologies at work: what stands of them leads extraction, and knowledge is derived to fit it.

Knowledge says by which ontologies it was derived (``tg:OntologyFit``). Where that is not what
stands and is set by now, everything is derived anew from the evidence that is there.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.engine.index.phase import IndexContext
from tgraph.extract.base import Extractor
from tgraph.extract.ontology import Ontology, combine
from tgraph.extract.ontology_reader import read_ontology
from tgraph.index.knowledge import Touched, touch_everything
from tgraph.index.ontology_fit import OntologyFit
from tgraph.librarian import Librarian
from tgraph.record.ontologies import RecordedOntology, ontology_quads, standing_ontologies
from tgraph.settings import Settings
from tgraph.store.base import Store
from tgraph.store.statements import Statements

FIT = f"{v.URN}ontology-fit"


def read_standing(librarian: Librarian, recorded: Sequence[RecordedOntology]) -> Ontology:
    """What the ontologies say together, in the order of their IRIs and names."""
    ordered = sorted(recorded, key=lambda each: (each.iris, each.name, each.content))
    return combine([read_ontology(librarian.get(o.content), o.name) for o in ordered])


def standing_fit(store: Store, librarian: Librarian, settings: Settings) -> OntologyFit | None:
    """How evidence is fitted to the ontologies that stand; None where none does."""
    recorded = standing_ontologies(store)
    if not recorded:
        return None
    strict = is_strict(settings, recorded)
    contents = sorted(f"{each.name} {each.content}" for each in recorded)
    return OntologyFit(read_standing(librarian, recorded), strict=strict, key="\n".join(contents))


def is_strict(settings: Settings, recorded: Sequence[RecordedOntology]) -> bool:
    """As is set; where nothing is, as was decided when an ontology was added."""
    said = settings.ontology.strict
    return any(each.strict for each in recorded) if said is None else said


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
