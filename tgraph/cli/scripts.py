"""The installed scripts: each loads its command and runs it.

What this module imports is loaded before an interruption is heeded, so it is next to nothing.
"""

from __future__ import annotations

from functools import partial

from tgraph.cli.interruption import heed


def run(name: str) -> None:
    """Load and run what ``tgraph.cli.main`` calls so."""
    heed()
    from tgraph.engine.garbage import never_collected_at_the_end, seldom_collected

    never_collected_at_the_end()
    with seldom_collected():
        from tgraph.cli import main as commands

        getattr(commands, name)()


main = partial(run, "main")
invoke_graph_rag = partial(run, "invoke_graph_rag")
list_explain_traces = partial(run, "list_explain_traces")
show_explain_trace = partial(run, "show_explain_trace")
show_extraction_provenance = partial(run, "show_extraction_provenance")
invoke_sparql_query = partial(run, "invoke_sparql_query")
