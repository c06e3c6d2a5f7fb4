"""``auto``: the mode is chosen by what a question is about, and why is on record."""

from __future__ import annotations

from dataclasses import replace

from tgraph.engine.methods import Chosen
from tgraph.engine.modes import method_of
from tgraph.engine.parts import Parts
from tgraph.models.base import Call
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.modes.registry import MODES
from tgraph.retrieve.reports import reports_at_hand


def chosen(question: Question, parts: Parts, context: Context) -> Chosen:
    """The method for what the question is about, by the settings ``auto``."""
    auto = parts.settings.auto
    chooser = parts.chooser()
    calls: list[Call] = []
    about = chooser.choose(question, context, calls.append)
    mode: str = getattr(auto, about.breadth)
    if _reads_only_reports(mode) and reports_at_hand(context) is None:
        mode = auto.several
        about = replace(about, reason=f"{about.reason}, but there are no community reports")
    return Chosen(method_of(mode, parts), about, chooser.agent, tuple(calls))


def _reads_only_reports(mode: str) -> bool:
    return mode in MODES and MODES[mode].reports == "only"
