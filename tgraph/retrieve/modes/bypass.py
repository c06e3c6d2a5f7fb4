"""Mode ``bypass``: the model answers alone, without documents."""

from __future__ import annotations

from tgraph.retrieve.modes.base import DocsRow, Mode

BYPASS = Mode(
    "bypass",
    DocsRow("for comparison", "nothing: the model answers alone", "1"),
    pipeline="alone",
)
