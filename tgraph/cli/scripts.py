"""The installed scripts: each script loads and runs its command.

This module's imports load before interruptions are handled, so imports are kept minimal."""

from __future__ import annotations

from functools import partial

from tgraph.cli.interruption import install_handler


def run_script(name: str) -> None:
    """Load and run what ``tgraph.cli.main`` calls so."""
    install_handler()
    from tgraph.engine.garbage import never_collected_at_the_end, seldom_collected

    never_collected_at_the_end()
    with seldom_collected():
        from tgraph.cli import main as commands

        getattr(commands, name)()


main = partial(run_script, "main")
invoke_graph_rag = partial(run_script, "invoke_graph_rag")
list_explain_traces = partial(run_script, "list_explain_traces")
show_explain_trace = partial(run_script, "show_explain_trace")
show_extraction_provenance = partial(run_script, "show_extraction_provenance")
invoke_sparql_query = partial(run_script, "invoke_sparql_query")
