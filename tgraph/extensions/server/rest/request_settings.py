"""Settings that a request may bring: how its own question is retrieved for and answered.

Which server a model runs at, keys, paths, and what is built for everybody (contexts, the tree of
summaries) are for who keeps the server."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from tgraph.errors import UsageError
from tgraph.settings import Settings, find_setting, with_overrides

_FIELDS = {
    "graph": """entity_limit triple_limit max_subgraph_size max_path_length edge_score_limit
        edge_limit evidence_limit history_turns max_context_tokens grounding_seeds graph_seeds
        traversal_instructions""",
    "local_search": """top_k_entities oversampling top_k_relationships community_level
        max_context_tokens report_share chunk_share relationship_ranking_attribute include
        exclude""",
    "basic_search": "k least_score max_context_tokens",
    "naive_search": "k least_score max_context_tokens",
    "bm25_search": "k max_context_tokens",
    "contextual_search": "k pool rrf_k max_context_tokens",
    "lightrag_search": """top_k least_score chunk_top_k related_chunk_number chunk_pick
        max_entity_tokens max_relationship_tokens max_total_tokens low_keywords high_keywords""",
    "raptor_search": "max_context_tokens k top_k evidence_limit start_layer num_layers threshold",
    "rerank": "pool min_score",
    "auto": """by_model computed one linked compared listed whole long long_chunks sparse
        sparse_edges""",
    "ppr_search": """passages top_k_edges top_k_entities dense_chunks edge_weight name_weight
        passage_weight subject_weight synonymy damping likeness head read filter steps
        max_context_tokens edge_share""",
    "global_search": """community_level min_rating seed map_context_tokens map_max_length
        reduce_context_tokens reduce_max_length dynamic dynamic_threshold dynamic_keep_parent
        dynamic_max_level dynamic_max_calls dynamic_num_repeats""",
    "drift_search": """k community_level folds depth breadth follow_ups call_budget duplicate
        top_k_entities top_k_relationships report_share chunk_share primer_context_tokens
        max_context_tokens reduce_context_tokens""",
    "answer": """least_confidence sure_confidence longest_quote language response_type
        general_knowledge""",
    "integrity": "strict",
    "sparql_search": "least_likelihood most_rows most_witnesses seconds max_context_tokens",
}
ALLOWED = frozenset(
    f"{section}.{field}" for section, fields in _FIELDS.items() for field in fields.split()
)


_FREE = "global_search.seed"
"""A number whose size costs nothing."""
_TIMES, _LEAST, _MOST_UNSET, _MOST_ITEMS = 20, 20, 10_000, 100
"""What a request may set: times the default, and this number where that is less; a number that has
no default; items of a list."""


def check_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of a request; raise ``UsageError`` for one that a request can't bring, or
    whose value would keep the server busy for nobody's sake."""
    for name in settings:
        if name not in ALLOWED:
            raise UsageError(
                f"The setting {name[:100]} can't be set by a request.",
                "Those of retrieval and of answers can, as section.name.",
            )
    checked = with_overrides(Settings(), settings)
    for name in settings:
        size, most = _measure(attrgetter(name)(checked)), most_of_setting(name)
        if size > most and name != _FREE:
            raise UsageError(
                f"The setting {name} is at most {most:,} in a request.",
                "Who keeps the server can set more in its settings.",
            )
    return dict(settings)


def most_of_setting(name: str) -> float:
    """Return the largest number, or the most items of a list, that a request may set."""
    definition = find_setting(name)
    default = definition.default if definition is not None else None
    if isinstance(default, tuple):
        return _MOST_ITEMS
    return max(_LEAST, _TIMES * default) if isinstance(default, int | float) else _MOST_UNSET


def _measure(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else len(value) if isinstance(value, tuple) else 0
