"""``tgraph serve``: the engine behind HTTP, for programs and people."""
