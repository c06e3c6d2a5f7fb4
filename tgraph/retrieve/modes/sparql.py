"""The mode ``sparql``: a question becomes a query over knowledge, and its result the answer."""

from __future__ import annotations

from pydantic import Field

from tgraph.retrieve.modes.base import DocsRow, Mode, Section


class SparqlSearchSettings(Section):
    """The mode ``sparql``."""

    least_likelihood: float = Field(
        0.5, ge=0, le=1, description="likelihood below which a query is not what was asked"
    )
    by_model: bool = Field(
        True, description="whether the language model, if one is set, writes the query"
    )
    max_context_tokens: int = Field(
        8_000, ge=2_000, description="tokens of a prompt from which a model writes a query"
    )
    most_rows: int = Field(10_000, ge=1, description="solutions of a query that are read")
    most_witnesses: int = Field(500, ge=1, description="witnesses of a result that are candidates")
    seconds: float = Field(20.0, gt=0, description="time in which a query must be answered")


SPARQL = Mode(
    "sparql",
    DocsRow(
        "that ask to count, add up, compare, or list what meets a condition",
        "the rows of tables and the statements of imported graphs, by a query",
        "0",
    ),
    section="sparql_search",
    pipeline="computed",
)
