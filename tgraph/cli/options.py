"""Options that many commands share, before or after a command's own arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from tgraph.retrieve.filters import Filters

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[F], F]


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep the value where every command finds it; the one nearest to the command counts."""
    if value not in (None, False):
        assert parameter.name is not None
        context.ensure_object(dict)
        context.obj[parameter.name] = value


def _ignored(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is not None and not context.resilient_parsing:
        context.ensure_object(dict)
        context.obj.setdefault("ignored", []).append(parameter.opts[-1])


_ROOT = click.option(
    "-r",
    "--root",
    type=click.Path(path_type=Path),
    expose_value=False,
    callback=_remember,
    help="The graph's folder (TGRAPH_ROOT). Default: the nearest one here or above.",
)
_COLLECTION = click.option(
    "-C",
    "--collection",
    metavar="NAME",
    expose_value=False,
    callback=_remember,
    help="The collection in the graph.  [default: default]",
)
_DEBUG = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    callback=_remember,
    help="Show a traceback when something fails (TGRAPH_DEBUG).",
)


def common(function: F) -> F:
    """``--root``, ``-C`` and ``--debug``."""
    return _apply(function, [_ROOT, _COLLECTION, _DEBUG])


def _nothing(*names: str) -> Any:
    return click.option(*names, hidden=True, expose_value=False, callback=_ignored)


def connection(function: F) -> F:
    """TrustGraph's connection flags: taken, and ignored with a note, since there is no server."""
    options = [
        _nothing("-u", "--url", "--api-url"),
        _nothing("-t", "--token"),
        _nothing("-w", "--workspace"),
        _nothing("-f", "--flow-id"),
    ]
    return _apply(function, options)


def graph_limits(function: F) -> F:
    """The limits of the graph mode, under TrustGraph's names and defaults."""
    options = [
        _limit("-e", "--entity-limit", "Seed entities.", 50),
        _limit("--triple-limit", None, "Edges taken from one entity.", 30),
        _limit("-s", "--max-subgraph-size", "Candidate edges.", 150),
        _limit("-p", "--max-path-length", "Hops from a seed entity.", 2),
        _limit("--edge-limit", None, "Edges selected for the answer.", 25),
        _nothing("--edge-score-limit"),
        _nothing("--max-reranker-input"),
    ]
    return _apply(function, options)


def report_options(function: F) -> F:
    """Which community reports are used."""
    options = [
        click.option(
            "--community-level",
            type=click.IntRange(min=0),
            metavar="N",
            help="Use reports down to this level (global, local, drift).  [default: 2]",
        ),
        click.option(
            "--dynamic-community-selection/--no-dynamic-community-selection",
            default=None,
            help="Global: rate reports from the top and read the relevant ones.  [default: no]",
        ),
    ]
    return _apply(function, options)


def _limit(first: str, second: str | None, text: str, default: int) -> Any:
    names = [first] if second is None else [first, second]
    return click.option(
        *names, type=click.IntRange(min=1), help=f"{text}  [default: {default}]", metavar="N"
    )


def answer_options(function: F) -> F:
    """The form of the answer, and what local search starts from."""
    options = [
        click.option(
            "--response-type", metavar="TEXT", help='As in "multiple paragraphs" or "a list".'
        ),
        click.option(
            "--general-knowledge",
            is_flag=True,
            default=None,
            help="Let the model add what it knows itself, marked [LLM: verify].",
        ),
        click.option(
            "--include-entity",
            multiple=True,
            metavar="NAME",
            help="Start from this entity in any case (local search).",
        ),
        click.option(
            "--exclude-entity",
            multiple=True,
            metavar="NAME",
            help="Leave this entity out (local search).",
        ),
    ]
    return _apply(function, options)


def filter_options(function: F) -> F:
    """What a question may be answered from, in every mode; the collection is `-C`."""
    options = [
        click.option(
            "--document",
            multiple=True,
            metavar="PATH",
            help="Only this document: a path, its end, a glob pattern or an IRI (repeatable).",
        ),
        click.option("--since", metavar="DATE", help="Only documents of this date or later."),
        click.option(
            "--until",
            metavar="DATE",
            help="Only documents of this date or earlier: their own, else that of taking them in.",
        ),
        click.option(
            "--type",
            multiple=True,
            metavar="TYPE",
            help="Only entities of this type, and what speaks of them (repeatable).",
        ),
    ]
    return _apply(function, options)


def filters_of(flags: dict[str, Any]) -> Filters:
    """The filters among a command's flags, which are taken out of them."""
    from tgraph.retrieve.filters import Filters

    return Filters(flags.pop("document"), flags.pop("since"), flags.pop("until"), flags.pop("type"))


def keyword_options(function: F) -> F:
    """Keywords of the LightRAG modes, which are else found in the question."""
    options = [
        click.option(
            "--low-keyword",
            multiple=True,
            metavar="TEXT",
            help="What the question names, instead of what is found (lightrag-*; repeatable).",
        ),
        click.option(
            "--high-keyword",
            multiple=True,
            metavar="TEXT",
            help="What it wants to know, instead of what is found (lightrag-*; repeatable).",
        ),
    ]
    return _apply(function, options)


def chat_options(function: F) -> F:
    """Which model does the work; more is in ``tgraph.toml`` and the environment."""
    options = [
        click.option("--model", metavar="NAME", help="The language model at the endpoint."),
        click.option("--base-url", metavar="URL", help="An OpenAI-compatible endpoint."),
        click.option(
            "--chat-provider",
            type=click.Choice(["auto", "openai", "embedded"]),
            help="Who answers; auto: a model where a key or URL is set, else the embedded default.",
        ),
        click.option(
            "--embedding-provider",
            type=click.Choice(["auto", "openai", "embedded", "hashing"]),
            help="Who embeds; auto: the embedded default.",
        ),
        click.option("--embedding-model", metavar="NAME", help="The embedding model."),
    ]
    return _apply(function, options)


SETTINGS_OF: Mapping[str, tuple[str, ...]] = {
    "entity_limit": ("graph.entity_limit",),
    "triple_limit": ("graph.triple_limit",),
    "max_subgraph_size": ("graph.max_subgraph_size",),
    "max_path_length": ("graph.max_path_length",),
    "edge_limit": ("graph.edge_limit",),
    "response_type": ("answer.response_type",),
    "general_knowledge": ("answer.general_knowledge",),
    "include_entity": ("local_search.include",),
    "exclude_entity": ("local_search.exclude",),
    "community_level": (
        "global_search.community_level",
        "local_search.community_level",
        "drift_search.community_level",
    ),
    "dynamic_community_selection": ("global_search.dynamic",),
    "low_keyword": ("lightrag_search.low_keywords",),
    "high_keyword": ("lightrag_search.high_keywords",),
    "model": ("chat.model",),
    "base_url": ("chat.base_url",),
    "chat_provider": ("chat.provider",),
    "embedding_provider": ("embedding.provider",),
    "embedding_model": ("embedding.model",),
    "concurrency": ("chat.concurrency",),
    "chunk_size": ("chunk.size",),
    "chunk_overlap": ("chunk.overlap",),
    "chunk_by": ("chunk.by",),
    "gleanings": ("extract.gleanings",),
    "claims": ("claims.enabled",),
    "method": ("extract.method",),
}
"""The settings that each flag overrides."""


def settings_of(flags: dict[str, Any]) -> dict[str, Any]:
    """The settings among a command's flags, those given only."""
    return {
        setting: value
        for name, value in flags.items()
        if value not in (None, ())
        for setting in SETTINGS_OF[name]
    }


def modes_of_flags() -> Mapping[str, Collection[str]]:
    """The modes in which each flag of ``ask`` has an effect; what is not here has one in all."""
    from tgraph.engine.modes import MODES

    edges, low = {"graph", "ppr"}, {"lightrag-local", "lightrag-hybrid", "lightrag-mix"}
    high = low - {"lightrag-local"} | {"lightrag-global"}
    documents = MODES.keys() - {"bypass"}
    return {
        "entity_limit": edges,
        "triple_limit": edges,
        "max_path_length": edges,
        "max_subgraph_size": edges | {"local", "drift"} | low | high,
        "edge_limit": {"graph"},
        "include_entity": {"local"},
        "exclude_entity": {"local"},
        "community_level": {"global", "local", "drift"},
        "dynamic_community_selection": {"global"},
        "low_keyword": low,
        "high_keyword": high,
        "general_knowledge": documents,
        "document": documents,
        "since": documents,
        "until": documents,
        "type": documents,
    }


FOR_A_MODEL = {"response_type", "general_knowledge"}
"""Flags of ``ask`` that have an effect only where a language model writes the answer."""


def without_effect(given: Collection[str], mode: str, *, model: bool) -> list[str]:
    """A note on those of the flags that the mode, or having no model, leaves without an effect.

    Each mode may be what ``auto`` chooses, so that it has a use for all of them.
    """
    from tgraph.engine.modes import MODES

    serves = modes_of_flags()
    idle = [name for name in given if mode in MODES and mode not in serves.get(name, MODES)]
    found = [_no_effect(idle, f"in the mode {mode}")] if idle else []
    unread = [name for name in given if name in FOR_A_MODEL and name not in idle and not model]
    return [*found, _no_effect(unread, "without a language model")] if unread else found


def _no_effect(names: Sequence[str], where: str) -> str:
    flags = ", ".join(f"--{name.replace('_', '-')}" for name in names)
    return f"Note: {flags} {'has' if len(names) == 1 else 'have'} no effect {where}."


def _apply(function: F, options: list[Any]) -> F:
    return reduce(lambda wrapped, option: option(wrapped), reversed(options), function)
