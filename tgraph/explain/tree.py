"""Traces and sources as trees that a person reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from tgraph.explain.action_tree import draw_actions
from tgraph.explain.influence_tree import influence_tree
from tgraph.explain.mapped import map_tree
from tgraph.explain.safety import one_line, safe
from tgraph.explain.stages import (
    item_text,
    kinds_text,
    matches_text,
    place_text,
    rejection_text,
    retrieved_text,
    standing_text,
    verdict_text,
    way_text,
)
from tgraph.explain.traced import (
    Trace,
    TracedCall,
    TracedEvidence,
    TracedItem,
    TracedSentence,
    TracedStep,
)

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from tgraph.explain.extraction import SourceChunk, SourcePage, SourceTree

_QUOTE, _LABEL = "italic", "bold"
_FAINT = "dim"
_LISTED_CALLS = 12
_LISTED = 25
"""What was selected and not used is listed up to so many, which is the edge limit's default."""

_VERDICT = {"supported": "green", "partly": "yellow", "undecided": "yellow"}
_STATUS = {"completed": "green", "no-evidence": "yellow"}


def trace_tree(trace: Trace, *, everything: bool = False, most: int | None = None) -> Tree:
    """The session as a tree; ``everything`` lists rejected candidates, ``most`` cuts the answer."""
    from rich.tree import Tree

    tree = Tree(_styled(trace.question, _LABEL), guide_style=_FAINT)
    _about(tree, trace)
    _answer(tree, trace, most, everything)
    _notes(tree, trace)
    _uncited(tree, trace, everything)
    influence_tree(tree, trace)
    map_tree(tree, trace, everything=everything)
    _rejected(tree, trace, everything)
    if trace.actions is not None:
        draw_actions(tree, trace.actions, everything=everything)
    _steps(tree, trace, everything)
    if trace.dropped:
        branch = tree.add(_styled("Left out on the way", _LABEL))
        for reason, count in trace.dropped.items():
            branch.add(_plain(f"{count} × {reason}"))
    return tree


def _about(tree: Tree, trace: Trace) -> None:
    status = _plain("Status     ")
    status.append(trace.status or "open", _STATUS.get(trace.status, "red"))
    if trace.error:
        status.append(f": {one_line(trace.error)}")
    tree.add(_plain(f"Session    {trace.explain_id}"))
    tree.add(status)
    if trace.questioned:
        tree.add(_styled(f"Standing   called into question: {one_line(trace.questioned)}", "red"))
    took = _seconds(trace.started, trace.ended)
    tree.add(_plain(f"Time       {_time(trace.started)} UTC{f', {took}' if took else ''}"))
    tree.add(_plain(f"Mode       {trace.mode}, knowledge of generation {trace.generation}"))
    if trace.choice_text:
        tree.add(_plain(f"Chosen     {trace.choice_text}"))
    if trace.filters_text:
        tree.add(_plain(f"Filters    {trace.filters_text}"))
    agents = dict.fromkeys(agent for step in trace.steps for agent in step.agents)
    tree.add(_plain(f"Agents     {', '.join(agents)}"))
    usage = trace.usage
    if usage.get("calls"):
        text = f"{usage['input_tokens']:,} tokens in, {usage['output_tokens']:,} out"
        tree.add(_plain(f"Usage      {text}, {usage['calls']} calls"))
    if trace.concepts:
        tree.add(_plain(f"Concepts   {trace.concepts_text}"))
    if trace.matches:
        tree.add(_plain(f"Entities   {matches_text(trace)}"))


def _answer(tree: Tree, trace: Trace, most: int | None, everything: bool) -> None:
    head = _styled("Answer", _LABEL)
    if not trace.sentences:
        tree.add(head.append(f"  {_cut(trace.answer, most)}" if trace.answer else "  none", ""))
        return
    branch = tree.add(head)
    edges = {edge.iri: edge for edge in trace.selected}
    left = most
    for number, sentence in enumerate(trace.sentences, 1):
        if left is not None and left <= 0:
            branch.add(_styled(f"… {len(trace.sentences) - number + 1} more sentences", _FAINT))
            break
        text = _plain(f"{number}. {_cut(sentence.text, left)}")
        left = None if left is None else left - len(sentence.text)
        if not sentence.citations:
            text.append(" [no citation]", "red")
        if sentence.verdict:
            text.append(f" [{verdict_text(sentence)}]", _VERDICT.get(sentence.verdict, "red"))
        leaf = branch.add(text)
        _grounds(leaf, sentence, edges, everything)


def _grounds(
    tree: Tree, sentence: TracedSentence, items: Mapping[str, TracedItem], everything: bool
) -> None:
    """What the sentence rests on; an item that leads to the same places only is named."""
    shown: set[tuple[str, int | None, int, int]] = set()
    for selection in sentence.edge_selections:
        item = items[selection]
        cited = [c for c in sentence.citations if c.edge_selection == selection]
        places = {(c.document, c.page, c.start, c.end) for c in cited}
        if item.kind != "edge" and places <= shown and not everything:
            tree.add(_styled(f"also in {item_text(item)}", _FAINT))
        else:
            _edge(tree, item, cited, everything)
        shown |= places


def _notes(tree: Tree, trace: Trace) -> None:
    for note in trace.notes:
        branch = tree.add(_styled("Note  ", _LABEL).append(one_line(note.text), "yellow"))
        for place in note.places:
            branch.add(_styled(f"“{one_line(place.quote)}”", _QUOTE)).add(_plain(place_text(place)))


def _uncited(tree: Tree, trace: Trace, everything: bool) -> None:
    used = {s for sentence in trace.sentences for s in sentence.edge_selections}
    rest = [edge for edge in trace.selected if edge.iri not in used]
    if not rest:
        return
    branch = tree.add(_styled(f"Selected, but in no sentence ({len(rest)})", _LABEL))
    if len(rest) > _LISTED and not everything:
        branch.add(_plain(f"{kinds_text(rest)}  (--all lists them)"))
    else:
        for edge in rest:
            _edge(branch, edge, edge.evidence if everything else (), everything)


def _edge(
    tree: Tree, edge: TracedItem, places: Sequence[TracedEvidence], whole: bool = False
) -> None:
    text = _styled(item_text(edge), "cyan")
    text.append(f"   {_measured(edge)}", _FAINT)
    branch = tree.add(text)
    if edge.reasoning:
        branch.add(_plain(f"because: {one_line(edge.reasoning)}"))
    for place in places:
        leaf = branch.add(_styled(f"“{one_line(place.quote)}”", _QUOTE))
        if place.way:
            leaf.add(_plain(f"by way of {way_text(place)}"))
        leaf.add(_plain(place_text(place)))
        if whole:
            leaf.add(_styled(place.chunk, _FAINT))


def _measured(item: TracedItem) -> str:
    standing = standing_text(item)
    return f"score {item.score:.2f}{f', {standing}' if standing else ''}"


def _rejected(tree: Tree, trace: Trace, everything: bool) -> None:
    points, others = _apart(trace.selected)
    left_points, left = _apart(trace.rejected)
    drawn = "the others are behind points" if points else f"{len(others)} selected"
    considered = f"{retrieved_text(trace)} retrieved, {drawn}"
    branch = tree.add(_styled("Candidates", _LABEL).append(f"  {considered}", ""))
    hint = "" if everything else "  (--all lists them)"
    if left:
        branch.add(_plain(f"not selected: {rejection_text(left)}{hint}"))
    if points or left_points:
        made = f"{len(points) + len(left_points)} points drawn, {len(points)} selected"
        why = f"; not selected: {rejection_text(left_points)}{hint}" if left_points else ""
        branch.add(_plain(f"{made}{why}"))
    if everything:
        for edge in trace.rejected:
            text = _plain(f"{edge.rank}. {item_text(edge)}")
            text.append(f"   {_measured(edge)}: {edge.reasoning}", _FAINT)
            branch.add(text)


def _apart(items: Sequence[TracedItem]) -> tuple[list[TracedItem], list[TracedItem]]:
    """The points among them, and what was retrieved."""
    points = [item for item in items if item.kind == "point"]
    return points, [item for item in items if item.kind != "point"]


def _steps(tree: Tree, trace: Trace, everything: bool) -> None:
    branch = tree.add(_styled("Steps", _LABEL))
    for step in trace.steps:
        branch.add(_step(step))
    if trace.calls:
        calls = branch.add(_plain(f"Calls ({len(trace.calls)})"))
        for alike in _calls(trace.calls, everything):
            calls.add(_call(alike))


def _calls(calls: Sequence[TracedCall], everything: bool) -> list[list[TracedCall]]:
    """The calls one by one; where they are many, those of one kind that went well together."""
    if everything or len(calls) <= _LISTED_CALLS:
        return [[call] for call in calls]
    found: dict[tuple[str, ...], list[TracedCall]] = {}
    for call in calls:
        key = (call.iri,) if call.error else (call.label, call.agent)
        found.setdefault(key, []).append(call)
    return list(found.values())


def _call(alike: Sequence[TracedCall]) -> Text:
    first, many = alike[0], f"{len(alike)} × " if len(alike) > 1 else ""
    sent, got = sum(c.input_tokens for c in alike), sum(c.output_tokens for c in alike)
    took = sum(c.milliseconds for c in alike)
    text = _plain(f"{many}{first.label} by {first.agent}: {sent:,} in, {got:,} out, {took:,} ms")
    if first.error:
        text.append(f"  {one_line(first.error)}", "red")
    return text


def _step(step: TracedStep) -> Text:
    took = _seconds(step.started, step.ended)
    return _plain(f"{step.label} by {', '.join(step.agents)}{f', {took}' if took else ''}")


# --- sources ------------------------------------------------------------------------------------


def source_tree(source: SourceTree, *, content: int | None = None) -> Tree:
    """A document as a tree; ``content`` shows so many characters of each chunk's text."""
    from rich.tree import Tree

    document = source.document
    tree = Tree(_styled(document.title, _LABEL), guide_style=_FAINT)
    standing = "" if document.standing else "  (no longer stands)"
    tree.add(_plain(f"Path        {document.path}{standing}"))
    tree.add(_plain(f"Document    {document.document}"))
    tree.add(_plain(f"Type        {document.media_type}, {source.characters:,} characters"))
    tree.add(_plain(f"Taken in    {_time(document.taken)} UTC"))
    for page in source.pages:
        branch = tree
        if page.number is not None:
            branch = tree.add(_styled(f"Page {page.number}", _LABEL))
        _chunks(branch, page, content)
    return tree


def _chunks(tree: Tree, page: SourcePage, content: int | None) -> None:
    for chunk in page.chunks:
        text = _styled(chunk.label, _LABEL)
        where = f"characters {chunk.start}–{chunk.end}, {chunk.tokens} tokens"
        text.append(f"  {where}", "")
        if chunk.heading:
            text.append(f", {one_line(chunk.heading)}", _FAINT)
        branch = tree.add(text)
        branch.add(_styled(chunk.chunk, _FAINT))
        if content is not None:
            branch.add(_styled(one_line(chunk.text, content), _QUOTE))
        _statements(branch, chunk)


def _statements(tree: Tree, chunk: SourceChunk) -> None:
    if chunk.entities:
        tree.add(_plain(f"Entities ({len(chunk.entities)}): {', '.join(chunk.entities)}"))
    branch = tree.add(_plain(f"Edges ({len(chunk.edges)})"))
    by_place: dict[tuple[int, int], list[str]] = {}
    quotes = {}
    for edge in chunk.edges:
        labels = (edge.subject_label, edge.predicate_label, edge.object_label)
        place = (edge.start, edge.end)
        by_place.setdefault(place, []).append(" — ".join(map(one_line, labels)))
        quotes[place] = edge.quote
    for place, edges in by_place.items():
        text = _styled(f"“{one_line(quotes[place])}”", _QUOTE)
        text.append(f"  {place[0]}–{place[1]}", _FAINT)
        leaf = branch.add(text)
        for line in dict.fromkeys(edges):
            leaf.add(_styled(line, "cyan"))
    if chunk.claims:
        branch = tree.add(_plain(f"Claims ({len(chunk.claims)})"))
    for claim in chunk.claims:
        text = _styled(f"“{one_line(claim.quote)}”", _QUOTE)
        text.append(f"  {claim.start}–{claim.end}", _FAINT)
        said = f"{claim.type} ({claim.status}): {one_line(claim.description)}"
        branch.add(text).add(_styled(said, "cyan"))


# --- words --------------------------------------------------------------------------------------


def _plain(text: str) -> Text:
    return _styled(text, "")


def _styled(text: str, style: str) -> Text:
    """A text with the style on it alone, so that what is appended has its own."""
    from rich.text import Text

    return Text().append(safe(text), style)


def _cut(text: str, most: int | None) -> str:
    return one_line(text, most)


def _time(text: str) -> str:
    return text[:19].replace("T", " ")


def _seconds(started: str, ended: str) -> str:
    if not started or not ended:
        return ""
    begun, done = (datetime.fromisoformat(text) for text in (started, ended))
    return f"{(done - begun).total_seconds():.2f} s"
