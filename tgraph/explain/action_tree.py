"""The tree of actions of a DRIFT search as a person reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tgraph.explain.safety import one_line, safe
from tgraph.explain.traced import TracedAction

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

_FAINT = "dim"
_STATUS = {"answered": "green", "unanswered": "yellow", "failed": "red", "pruned": _FAINT}


def actions_text(root: TracedAction) -> str:
    """How many questions were asked on the way, and how many were not, by the limit."""
    everything = list(_all(root))
    asked = sum(action.status != "pruned" for action in everything)
    counts = Counter(_limit(action) for action in everything if action.status == "pruned")
    pruned = ", ".join(f"{count} {reason}" for reason, count in counts.most_common())
    return f"{asked} carried out" + (f", not asked: {pruned}" if pruned else "")


def draw_actions(tree: Tree, root: TracedAction, *, everything: bool = False) -> None:
    """Add the tree below ``tree``; ``everything`` shows each point as well."""
    head = _text("Actions", "bold").append(f"  {safe(actions_text(root))}", "")
    _draw(tree.add(head), root, everything)


def _draw(branch: Tree, action: TracedAction, everything: bool) -> None:
    node = branch.add(_line(action))
    if everything and action.reasoning:
        node.add(_text(f"promise {_score(action.promise)}: {action.reasoning}", _FAINT))
    if everything:
        for point in action.points:
            line = _text(f"{_score(point.score)}  {one_line(point.text)}", "italic")
            if point.rejected:
                line.append(f"  not used: {one_line(point.rejected)}", _FAINT)
            node.add(line)
    for child in action.children:
        _draw(node, child, everything)


def _line(action: TracedAction) -> Text:
    if action.status == "pruned":
        text = _text(one_line(action.query), _FAINT)
        return text.append(f"   promise {_score(action.promise)}: {safe(action.reason)}", _FAINT)
    text = _text(_name(action), "cyan")
    text.append("   ")
    text.append(action.status, _STATUS.get(action.status, "red"))
    for part in _facts(action):
        text.append(f", {safe(part)}", _FAINT)
    return text


def _name(action: TracedAction) -> str:
    if action.kind == "question":
        return "The question itself"
    return f"Reports, fold {action.number}" if action.kind == "fold" else one_line(action.query)


def _facts(action: TracedAction) -> Iterator[str]:
    if action.promise is not None:
        yield f"promise {_score(action.promise)}"
    if action.score is not None:
        yield f"score {_score(action.score)}"
    yield f"{action.retrieved} retrieved, {action.shown} read, {len(action.points)} points"
    if action.proposed_again:
        yield f"proposed {action.proposed_again + 1} times"
    if action.reason:
        yield one_line(action.reason)


def _limit(action: TracedAction) -> str:
    return "nearly the same as another" if action.reason.startswith("nearly") else action.reason


def _all(action: TracedAction) -> Iterator[TracedAction]:
    yield action
    for child in action.children:
        yield from _all(child)


def _score(score: float | None) -> str:
    return "–" if score is None else f"{score:.2f}"


def _text(text: str, style: str) -> Text:
    from rich.text import Text

    return Text().append(safe(text), style)
