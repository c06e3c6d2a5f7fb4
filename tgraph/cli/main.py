"""The command line: ``tgraph`` with its commands, and TrustGraph's names for some commands."""

from __future__ import annotations

from functools import partial

import click

from tgraph import __version__
from tgraph.cli.ask import ask, suggest
from tgraph.cli.audit import audit
from tgraph.cli.catalogue import catalogue
from tgraph.cli.chat import chat
from tgraph.cli.collections import collections
from tgraph.cli.completion import completion
from tgraph.cli.config import config
from tgraph.cli.documents import documents, impact, remove, retract, source
from tgraph.cli.entities import entities
from tgraph.cli.explain import verify, why_not
from tgraph.cli.facts import curations, facts
from tgraph.cli.history import history
from tgraph.cli.index import index
from tgraph.cli.init import init
from tgraph.cli.models import models
from tgraph.cli.ontology import ontology
from tgraph.cli.options import common
from tgraph.cli.replay import diff, replay
from tgraph.cli.running import CommandGroup
from tgraph.cli.sparql import sparql
from tgraph.cli.trace import sessions, trace


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tgraph")
@common
def cli() -> None:
    """Answer questions over your documents, and prove every answer.

    \b
    Examples:
      tgraph index docs/
      tgraph ask "What was the War on Terror?" -x
      tgraph chat
      tgraph trace last
      tgraph audit --list

    The graph is the folder named by --root or TGRAPH_ROOT, else the nearest graph in this folder or
    above (`index` makes ./tgraph-graph). Exit codes: 0 done, 1 error, 2 wrong usage, 3 no evidence
    for an answer, 4 an audit failed, 5 an endpoint can't be reached, 130 interrupted.

    Completion for bash: eval "$(tgraph completion bash)" (likewise zsh and fish).
    """


for _command in (
    init,
    index,
    ask,
    chat,
    suggest,
    sessions,
    trace,
    history,
    replay,
    diff,
    why_not,
    verify,
    source,
    audit,
    documents,
    impact,
    retract,
    remove,
    entities,
    facts,
    curations,
    ontology,
    sparql,
    catalogue,
    models,
    config,
    collections,
    completion,
):
    cli.add_command(_command)


main = partial(cli, prog_name="tgraph")
invoke_graph_rag = partial(ask, prog_name="tg-invoke-graph-rag", default_map={"mode": "graph"})
list_explain_traces = partial(sessions, prog_name="tg-list-explain-traces")
show_explain_trace = partial(trace, prog_name="tg-show-explain-trace")
show_extraction_provenance = partial(source, prog_name="tg-show-extraction-provenance")
invoke_sparql_query = partial(sparql, prog_name="tg-invoke-sparql-query")
