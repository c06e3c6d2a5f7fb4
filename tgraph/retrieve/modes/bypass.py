"""The mode ``bypass``: the model answers alone, without any documents."""

from __future__ import annotations

from tgraph.retrieve.modes.base import Mode, Row

BYPASS = Mode(
    "bypass",
    Row("for comparison", "nothing: the model answers alone", "1"),
    pipeline="alone",
)
