"""Command options shared by many commands, accepted before or after a command's own arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from tgraph.cli import completion
from tgraph.cli.running import Command
from tgraph.plugins import CHAT_MODELS, EMBEDDERS, Registry

if TYPE_CHECKING:
    from tgraph.retrieve.filters import Filters
    from tgraph.retrieve.modes.base import Flag, Mode

F = TypeVar("F", bound=Callable[..., Any])


def _store_option(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Store an option value for every command; the value nearest to the command counts."""
    if value not in (None, False):
        assert parameter.name is not None
        context.ensure_object(dict)
        context.obj[parameter.name] = value


def _record_ignored(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is not None and not context.resilient_parsing:
        context.ensure_object(dict)
        context.obj.setdefault("ignored", []).append(parameter.opts[-1])


def _combine_options(*options: Any) -> Callable[[F], F]:
    """Return a decorator applying all options in order."""
    return lambda function: reduce(lambda made, option: option(made), reversed(options), function)


_kept = partial(click.option, expose_value=False, callback=_store_option)
_nothing = partial(click.option, hidden=True, expose_value=False, callback=_record_ignored)

common = _combine_options(
    _kept(
        "-r",
        "--root",
        type=click.Path(path_type=Path),
        help=(
            "The graph's folder (TGRAPH_ROOT). Default: the nearest graph in this folder or above."
        ),
    ),
    _kept(
        "-C",
        "--collection",
        metavar="NAME",
        help="The collection in the graph.  [default: default]",
    ),
    _kept(
        "--debug",
        is_flag=True,
        help="Show a traceback when something fails (TGRAPH_DEBUG).",
    ),
)
"""``--root``, ``-C`` and ``--debug``."""

json_array = click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
"""For what lists something."""

connection = _combine_options(
    _nothing("-u", "--url", "--api-url"),
    _nothing("-t", "--token"),
    _nothing("-w", "--workspace"),
    _nothing("-f", "--flow-id"),
)
"""TrustGraph's connection flags: taken, and ignored with a note, since there is no server."""

batches = _nothing("-b", "--batch-size")
"""TrustGraph's size of a batch of rows: taken, and ignored with a note, since rows are streamed."""


class ExtensibleChoice(click.Choice[str]):
    """A choice of the ``choices``, which the help lists, and of what extensions add.

    ``known`` are the names of tgraph's own that another command has a use for.
    """

    def __init__(
        self, choices: Sequence[str], registry: Registry, known: Sequence[str] = ()
    ) -> None:
        super().__init__(choices)
        self._registry = registry
        self._known = {*choices, *known}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self._known:
            return super().convert(value, param, ctx)
        added = [name for name in self._registry.names() if name not in self._known]
        return click.Choice((*self.choices, *added)).convert(value, param, ctx)


answer_options = _combine_options(
    click.option(
        "--response-type",
        metavar="TEXT",
        help=('The form of the answer, such as "multiple paragraphs" or "a list".'),
    ),
    click.option(
        "--language",
        metavar="TAG",
        help=(
            "The language of an answer by a model, such as de or German.  [default: the question's]"
        ),
    ),
    click.option(
        "--general-knowledge",
        is_flag=True,
        default=None,
        help="Let the model add general knowledge, marked [LLM: verify].",
    ),
    click.option(
        "--strict",
        is_flag=True,
        default=None,
        help=(
            "End with an error if evidence differs from the stored text, in place of leaving "
            "out the evidence with a note; exit with code 3 for an uncertain answer."
        ),
    ),
)
"""The form of the answer, and what must hold of it."""

filter_options = _combine_options(
    click.option(
        "--document",
        multiple=True,
        metavar="PATH",
        shell_complete=completion.complete_documents,
        help=(
            "Search only this document: a path, the end of a path, a glob pattern or an IRI "
            "(repeatable)."
        ),
    ),
    click.option("--since", metavar="DATE", help="Search only documents of this date or later."),
    click.option(
        "--until",
        metavar="DATE",
        help=(
            "Search only documents of this date or earlier; a document without a date has the"
            " date of indexing."
        ),
    ),
    click.option(
        "--type",
        multiple=True,
        metavar="TYPE",
        help=(
            "Search only entities of this type, and texts that mention such entities (repeatable)."
        ),
    ),
    click.option(
        "--languages",
        multiple=True,
        metavar="TAG[,TAG]",
        help=(
            "Search only documents in these languages, as declared in the document or else "
            "detected; also a JSON list."
        ),
    ),
    click.option(
        "--valid-at",
        metavar="DATE",
        help="Leave out claims that do not hold at this date, and facts dated only by such claims.",
    ),
    click.option(
        "-g",
        "--graph",
        metavar="GRAPH",
        help=(
            'Search only this named graph, such as the IRI of a document; "" is all '
            "knowledge, the default."
        ),
    ),
)
"""What a question may be answered from, in every mode; the collection is `-C`."""


def filters_of(flags: dict[str, Any]) -> Filters:
    """Extract filters from command flags, removing the filter flags."""
    from tgraph.retrieve.filters import Filters

    graph = flags.pop("graph")
    languages = [part for text in flags.pop("languages") for part in re.split(r'[\[\]",\s]+', text)]
    return Filters(
        (*flags.pop("document"), *([graph] if graph else [])),
        flags.pop("since"),
        flags.pop("until"),
        flags.pop("type"),
        tuple(filter(None, languages)),
        flags.pop("valid_at"),
    )


chat_options = _combine_options(
    click.option("--model", metavar="NAME", help="The language model at the endpoint."),
    click.option("--base-url", metavar="URL", help="An OpenAI-compatible endpoint."),
    click.option(
        "--chat-provider",
        type=ExtensibleChoice(["auto", "openai", "embedded"], CHAT_MODELS),
        help=(
            "The provider of the language model; auto: the endpoint if a key or URL is set, "
            "else the embedded default."
        ),
    ),
    click.option(
        "--embedding-provider",
        type=ExtensibleChoice(["auto", "openai", "embedded", "hashing"], EMBEDDERS),
        help="The provider of embeddings; auto: the embedded default.",
    ),
    click.option("--embedding-model", metavar="NAME", help="The embedding model."),
)
"""Which model does the work; more is in ``tgraph.toml`` and the environment."""


strict_ontology = click.option(
    "--strict-ontology/--no-strict-ontology",
    default=None,
    help=(
        "Leave entities and facts outside the ontology out of knowledge; the evidence stays "
        "on record."
    ),
)
"""``ontology.strict``, which is remembered until it is decided otherwise."""


SETTINGS_OF: Mapping[str, tuple[str, ...]] = {
    "response_type": ("answer.response_type",),
    "language": ("answer.language",),
    "general_knowledge": ("answer.general_knowledge",),
    "strict": ("integrity.strict",),
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
    "follow_links": ("ingest.follow_links",),
    "workers": ("executor.workers", "embedding.threads"),
    "executor": ("executor.address",),
    "to": ("publish.to",),
    "query_url": ("publish.query",),
    "user": ("publish.user",),
    "claims": ("claims.enabled",),
    "claim_description": ("claims.description",),
    "entity_specs": ("claims.entity_specs",),
    "method": ("extract.method",),
    "strict_ontology": ("ontology.strict",),
}
"""The settings that each flag overrides, those aside that only some modes have a use for."""


def settings_of(flags: dict[str, Any]) -> dict[str, Any]:
    """Return settings from a command's flags, only flags with a value."""
    return {
        setting: value
        for name, value in flags.items()
        if value not in (None, ())
        for setting in SETTINGS_OF.get(name) or _settings_of_modes()[name]
    }


class ModeOption(click.Option):
    """``--mode``, with completion of existing modes; ``{modes}`` in the help text lists the
    modes."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = (self.help or "").replace("{modes}", ", ".join(_load_modes()))
        return super().get_help_record(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return completion.complete_modes(ctx, self, incomplete)


def mode_option(text: str, default: str) -> Callable[[F], F]:
    """Return a ``--mode`` option with the help text; modes are loaded only on demand."""
    return click.option(
        "-m", "--mode", cls=ModeOption, default=default, show_default=True, help=text
    )


class ModeFlagsCommand(Command):
    """A command with additional flags for certain modes, placed after ``--{AFTER}``."""

    AFTER = "general_knowledge"

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        parameters = super().get_params(ctx)
        place = [parameter.name for parameter in parameters].index(self.AFTER) + 1
        return [*parameters[:place], *_mode_flags(), *parameters[place:]]


@cache
def _mode_flags() -> Sequence[click.Option]:
    from tgraph.retrieve.modes.registry import FLAGS

    return [_flag_option(flag) for flag in FLAGS]


def _flag_option(flag: Flag) -> click.Option:
    if flag.multiple:
        return click.Option(flag.names, multiple=True, metavar=flag.metavar, help=flag.help)
    text = f"{flag.help}  [default: {_flag_default(flag)}]"
    kind = _flag_type(flag)
    if kind is None:
        return click.Option(flag.names, is_flag=True, default=None, help=text)
    metavar = None if flag.choices else flag.metavar
    return click.Option(flag.names, type=kind, metavar=metavar, help=text)


def _flag_type(flag: Flag) -> click.ParamType[Any] | None:
    """Return the type of a flag's value; None for flags without a value."""
    if flag.choices:
        return click.Choice(flag.choices)
    if flag.share:
        return click.FloatRange(0, 1)
    return None if flag.least is None else click.IntRange(min=flag.least)


def _flag_default(flag: Flag) -> str:
    """Return the default of the first setting that the flag overrides."""
    from tgraph.retrieve.modes.registry import ModeSettings

    section, _, name = _settings_of_modes()[flag.parameter][0].partition(".")
    value = getattr(getattr(ModeSettings(), section), name)
    if value is None:
        return "all"
    return str(value) if value is not False else "no"


def _load_modes() -> Mapping[str, Mode]:
    from tgraph.retrieve.modes.registry import MODES

    return MODES


def _settings_of_modes() -> Mapping[str, Sequence[str]]:
    """Return settings overridden by each mode flag, and by ``--prepare`` for all modes."""
    settings_by_flag: dict[str, dict[str, None]] = {}
    for mode in _load_modes().values():
        for flag, setting in mode.flags.items():
            settings_by_flag.setdefault(flag.parameter, {})[setting] = None
        if mode.need is not None:
            settings_by_flag.setdefault("prepare", {})[mode.need.setting] = None
    return {name: list(settings) for name, settings in settings_by_flag.items()}


OF_DOCUMENTS = (
    "general_knowledge",
    "document",
    "since",
    "until",
    "type",
    "languages",
    "valid_at",
    "graph",
)
"""Flags of ``ask`` that only a mode without documents has no use for."""


def modes_of_flags() -> Mapping[str, Collection[str]]:
    """Return, for each ``ask`` flag, the modes affected; an absent flag affects all modes."""
    modes = _load_modes()
    retrieving = [name for name, mode in modes.items() if mode.pipeline != "alone"]
    modes_by_flag: dict[str, list[str]] = dict.fromkeys(OF_DOCUMENTS, retrieving)
    for name, mode in modes.items():
        for flag in mode.flags:
            modes_by_flag.setdefault(flag.parameter, []).append(name)
    return modes_by_flag


FOR_A_MODEL = {"response_type", "language", "general_knowledge"}
"""Flags of ``ask`` that have an effect only where a language model writes the answer."""


FOR_A_RERANKER = {"max_reranker_input", "min_rerank_score"}
"""Flags of ``ask`` that have an effect only where texts are ranked anew."""


def without_effect(given: Collection[str], mode: str, *, model: bool, reranker: bool) -> list[str]:
    """Return notes on flags that have no effect, given the mode, the model and the reranker.

    ``auto`` may choose any mode, and so has a use for all flags."""
    modes, serves = _load_modes(), modes_of_flags()
    idle = [name for name in given if mode in modes and mode not in serves.get(name, modes)]
    notes = [_no_effect(idle, f"in the mode {mode}")] if idle else []
    missing = (
        (FOR_A_MODEL, model, "without a language model"),
        (FOR_A_RERANKER, reranker, "without a reranker (settings: rerank)"),
    )
    for names, there, where in missing:
        unread = [name for name in given if name in names and name not in idle and not there]
        notes += [_no_effect(unread, where)] if unread else []
    return notes


def _no_effect(names: Sequence[str], where: str) -> str:
    flags = ", ".join(f"--{name.replace('_', '-')}" for name in names)
    return f"Note: {flags} {'has' if len(names) == 1 else 'have'} no effect {where}."
