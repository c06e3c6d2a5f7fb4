"""The last influence analysis of an answer, in the tree of its trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tgraph.explain.safety import one_line, safe

if TYPE_CHECKING:
    from rich.tree import Tree

    from tgraph.explain.traced import Trace


def influence_tree(tree: Tree, trace: Trace) -> None:
    """A branch with what the answer depends on, the heaviest first, where that was measured."""
    from rich.text import Text

    found = trace.influence
    if found is None:
        return
    head = Text().append("Influence", "bold")
    head.append(f"  {found.method}, {found.runs} runs{_measures(found.measures)}")
    branch = tree.add(head)
    items = {item.iri: item for item in trace.selected}
    cited = {s for sentence in trace.sentences for s in sentence.edge_selections}
    numbers = {sentence.iri: n for n, sentence in enumerate(trace.sentences, 1)}
    for iri in filter(items.__contains__, found.above):
        where = [n for s, n in numbers.items() if iri in found.sentences.get(s, {})]
        text = Text().append(f"{found.weights[iri]:5.2f}  ")
        text.append(safe(one_line(items[iri].words)), "cyan")
        text.append(f"   {_standing(iri in cited, where)}", "dim")
        branch.add(text)
    if not found.above:
        branch.add(Text("no single item has influence above the noise"))
    idle = sum(iri in cited and iri not in found.above for iri in found.weights)
    if idle:
        branch.add(Text(f"{idle} cited without influence of their own", "dim"))


def _standing(cited: bool, sentences: list[int]) -> str:
    said = "cited" if cited else "not cited"
    if not sentences:
        return said
    many = "sentences" if len(sentences) > 1 else "sentence"
    return f"{said}; {many} {', '.join(map(str, sentences))}"


def _measures(measures: Mapping[str, float]) -> str:
    return "".join(f", {name.replace('-', ' ')} {value:.2f}" for name, value in measures.items())
