"""The modes of retrieval by name, and the sections of the settings that are theirs.

Whatever has to know which modes there are reads them here: the settings, the command and its
completion, ``auto``, why-not, and the page on modes. A new mode is a module, and its lines here, or
a mode of an extension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, create_model

from tgraph import plugins
from tgraph.errors import UsageError
from tgraph.retrieve.modes.base import DocsRow, Flag, Form, Mode, Section, Topic
from tgraph.retrieve.modes.basic import BASIC, NAIVE, BasicSearchSettings, NaiveSearchSettings
from tgraph.retrieve.modes.bm25 import BM25, Bm25SearchSettings
from tgraph.retrieve.modes.bypass import BYPASS
from tgraph.retrieve.modes.contextual import (
    CONTEXTUAL,
    ContextualSearchSettings,
    RerankSettings,
)
from tgraph.retrieve.modes.drift import DRIFT, DriftSearchSettings
from tgraph.retrieve.modes.global_search import GLOBAL, GlobalSearchSettings
from tgraph.retrieve.modes.graph import GRAPH, GraphSettings
from tgraph.retrieve.modes.lightrag import (
    LIGHTRAG_GLOBAL,
    LIGHTRAG_HYBRID,
    LIGHTRAG_LOCAL,
    LIGHTRAG_MIX,
    LightragSearchSettings,
)
from tgraph.retrieve.modes.local import LOCAL, LocalSearchSettings
from tgraph.retrieve.modes.ppr import PPR, PprSearchSettings
from tgraph.retrieve.modes.raptor import (
    RAPTOR,
    RAPTOR_TRAVERSAL,
    RaptorSearchSettings,
    RaptorSettings,
)
from tgraph.retrieve.modes.sparql import SPARQL, SparqlSearchSettings
from tgraph.retrieve.modes.suggest import SUGGEST

AUTO = "auto"
"""What stands for the mode that a question asks for."""

AUTO_ROW = DocsRow(
    "of any kind",
    "what the mode reads that it chooses",
    "as that mode, and 1 where the model chooses",
)

_OWN_MODES: Mapping[str, Mode] = {
    mode.name: mode
    for mode in (
        GRAPH,
        LOCAL,
        GLOBAL,
        DRIFT,
        BASIC,
        BM25,
        CONTEXTUAL,
        PPR,
        RAPTOR,
        RAPTOR_TRAVERSAL,
        LIGHTRAG_LOCAL,
        LIGHTRAG_GLOBAL,
        LIGHTRAG_HYBRID,
        LIGHTRAG_MIX,
        NAIVE,
        SPARQL,
        BYPASS,
    )
}
_ADDED_MODES: Mapping[str, Mode] = plugins.MODES.call_all(reserved=(*_OWN_MODES, AUTO))

MODES: Mapping[str, Mode] = {**_OWN_MODES, **_ADDED_MODES}
"""The modes that a question may ask for, in the order in which lists have them; the modes of
extensions come last."""

DEFAULT = AUTO
"""What a question is asked in where nothing is said."""


def mode_named(name: str) -> Mode | None:
    """Return a session's mode; None for modes unknown to this tgraph version."""
    return SUGGEST if name == SUGGEST.name else MODES.get(name)


def mode_for(form: Form) -> str:
    """Return the mode chosen by ``auto`` for a question form, unless settings decide."""
    return next(mode.name for mode in MODES.values() if form in mode.answers)


class AutoSettings(Section):
    """The mode ``auto``: which mode is for questions of which form."""

    by_model: bool = Field(False, description="let the model, where there is one, tell the form")
    one: str = Field(mode_for("one"), description="the mode for questions about one thing")
    linked: str = Field(
        mode_for("linked"), description="the mode for what is found through something else"
    )
    compared: str = Field(mode_for("compared"), description="the mode for comparisons")
    listed: str = Field(mode_for("listed"), description="the mode for lists and counts")
    whole: str = Field(mode_for("whole"), description="the mode for questions about everything")
    long: str = Field(
        CONTEXTUAL.name,
        description="the mode for one thing, lists and counts where documents are long",
    )
    long_chunks: float = Field(
        5.0, ge=1, description="chunks of a document, on average, from which documents are long"
    )
    sparse: str = Field(
        CONTEXTUAL.name,
        description="the mode for all but the whole where the graph is sparse",
    )
    sparse_edges: float = Field(
        1.0, ge=0, description="edges for each chunk, on average, below which the graph is sparse"
    )

    computed: str = Field(
        SPARQL.name,
        description="the mode for what a query over tables or graphs computes; empty: none",
    )

    @property
    def modes(self) -> tuple[str, ...]:
        """All selectable modes, without duplicates."""
        forms = (self.one, self.linked, self.compared, self.listed, self.whole)
        return tuple(dict.fromkeys((*forms, self.long, self.sparse)))


class OwnSections(BaseModel):
    """The sections of the settings that the modes of the core have."""

    graph: GraphSettings = GraphSettings()
    local_search: LocalSearchSettings = LocalSearchSettings()
    basic_search: BasicSearchSettings = BasicSearchSettings()
    naive_search: NaiveSearchSettings = NaiveSearchSettings()
    lightrag_search: LightragSearchSettings = LightragSearchSettings()
    contextual_search: ContextualSearchSettings = ContextualSearchSettings()
    raptor: RaptorSettings = RaptorSettings()
    raptor_search: RaptorSearchSettings = RaptorSearchSettings()
    rerank: RerankSettings = RerankSettings()
    auto: AutoSettings = AutoSettings()
    ppr_search: PprSearchSettings = PprSearchSettings()
    global_search: GlobalSearchSettings = GlobalSearchSettings()
    drift_search: DriftSearchSettings = DriftSearchSettings()
    bm25_search: Bm25SearchSettings = Bm25SearchSettings()
    sparql_search: SparqlSearchSettings = SparqlSearchSettings()


def _with_added_sections() -> type[OwnSections]:
    """Return the sections of the core with the sections that modes of extensions bring."""
    added = {mode.section: mode.settings for mode in _ADDED_MODES.values() if mode.settings}
    if clashes := added.keys() & OwnSections.model_fields.keys():
        raise UsageError(f"An extension brings the settings {min(clashes)!r}, which tgraph has.")
    fields: Any = {name: (section, section()) for name, section in added.items()}
    return create_model("ModeSettings", __base__=OwnSections, **fields) if added else OwnSections


if TYPE_CHECKING:
    ModeSettings = OwnSections
else:
    ModeSettings = _with_added_sections()


TOPICS: tuple[Topic, ...] = ("start", "keywords", "limits", "reports")

FLAGS: Sequence[Flag] = sorted(
    dict.fromkeys(flag for mode in MODES.values() for flag in mode.flags),
    key=lambda flag: TOPICS.index(flag.topic),
)
"""The flags of ``ask`` that only some modes have a use for, in the order of its help."""
