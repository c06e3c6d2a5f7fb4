"""The query of a computed answer with its result, read from a session's record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, get_args

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.explain.trace.bundle_reader import BundleReader
from tgraph.explain.trace.values import TraceItem
from tgraph.index.sources import is_mark
from tgraph.model import (
    ComputedResult,
    ResultWitness,
    UnchosenQuery,
    WitnessPlace,
    WitnessRole,
    build_rows,
)

_ROLES: dict[str, WitnessRole] = {role: role for role in get_args(WitnessRole)}


def read_role(text: str) -> WitnessRole | None:
    """Return the role of a witness; None for what is no witness."""
    return _ROLES.get(text)


def read_computed(
    said: BundleReader, uuid: str, selected: Sequence[TraceItem], find_label: Callable[[str], str]
) -> ComputedResult | None:
    """Return the recorded query with its result and witnesses; None where nothing was computed."""
    query = v.session_part_iri("query", uuid)
    if not said.read_texts(query, "type"):
        return None
    bindings = _read_json(said.read_text(query, "result"), [])
    variables = list(bindings[0]) if bindings else []
    columns = _read_json(said.read_text(query, "columns"), {}) or {name: name for name in variables}
    witnesses = tuple(_read_witnesses(selected))
    return ComputedResult(
        sparql=said.read_text(query, "sparql"),
        written=said.read_text(query, "writtenQuery"),
        algebra=said.read_text(query, "algebra"),
        likelihood=said.real(query, "confidence"),
        reasons=said.read_text(query, "reasoning"),
        columns=tuple(columns.values()),
        rows=build_rows(bindings, tuple(columns), witnesses, _labeller(find_label)),
        witnesses=witnesses,
        unchosen=tuple(
            UnchosenQuery(
                said.read_text(iri, "sparql"),
                said.real(iri, "confidence"),
                said.read_text(iri, "reasoning"),
                said.read_text(iri, "rejectionReason"),
            )
            for iri in said.read_numbered_iris(query, "candidateQuery")
        ),
    )


def _read_json(text: str, absent: Any) -> Any:
    """Return a recorded JSON text; ``absent`` where there is none, or it was erased."""
    return json.loads(text) if text and not is_mark(text) else absent


def _labeller(find_label: Callable[[str], str]) -> Callable[[NamedNode], str]:
    return lambda node: find_label(node.value)


def _read_witnesses(selected: Iterable[TraceItem]) -> Iterable[ResultWitness]:
    for item in selected:
        if item.role is None:
            continue
        place = WitnessPlace.first_of(item.evidence)
        yield ResultWitness(item.item, item.words, item.role, item.rows, place)
