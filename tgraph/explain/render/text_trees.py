"""Traces and sources as trees that a person reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tgraph.explain.render.answer import quoted
from tgraph.explain.render.markup import is_code, terminal_quote, terminal_text
from tgraph.explain.render.wording import (
    actions_text,
    agents_text,
    batch_text,
    bridge_text,
    clock,
    item_text,
    kinds_text,
    knowledge_text,
    label_text,
    matches_text,
    origin_text,
    place_text,
    point_text,
    rating_text,
    rejection_text,
    retrieved_text,
    seconds,
    standing_text,
    verdict_text,
    way_text,
)
from tgraph.explain.trace.values import (
    Trace,
    TraceAction,
    TraceCall,
    TraceItem,
    TraceQuotation,
    TraceSentence,
)
from tgraph.model import SegmentKind
from tgraph.rendering import many, one_line, safe

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from tgraph.explain.trace.documents import (
        ExtractedEdge,
        SourceChunk,
        SourceClaim,
        SourcePage,
        SourceTree,
    )

_QUOTE, _LABEL, _ITEM, _FAINT = "italic", "bold", "cyan", "dim"
_LISTED_CALLS = 12
_LISTED = 25
"""What was selected and not used is listed up to so many, which is the edge limit's default."""
_LISTED_POINTS = 6
_HINT = "  (--all lists them)"

_VERDICT = {"supported": "green", "quoted": "green", "partly": "yellow", "undecided": "yellow"}
_STATUS = {"completed": "green", "no-evidence": "yellow", "context-only": "green"}
_ACTION = {"answered": "green", "unanswered": "yellow", "failed": "red"}


def trace_tree(trace: Trace, *, everything: bool = False, most: int | None = None) -> Tree:
    """The session as a tree; ``everything`` lists rejected candidates, ``most`` cuts the answer."""
    from rich.tree import Tree

    tree = Tree(_text((trace.question, _LABEL)), guide_style=_FAINT)
    for line in _about(trace):
        tree.add(line)
    _answer(tree, trace, most, everything)
    for note in trace.notes:
        branch = tree.add(_text(("Note  ", _LABEL), (one_line(note.text), "yellow")))
        for place in note.places:
            branch.add(terminal_quote(place, _QUOTE)).add(_text(place_text(place)))
    _uncited(tree, trace, everything)
    _influence(tree, trace)
    _map(tree, trace, everything)
    _rejected(tree, trace, everything)
    if trace.actions is not None:
        head = _text(("Actions", _LABEL), f"  {actions_text(trace.actions)}")
        _action(tree.add(head), trace.actions, everything)
    _steps(tree, trace, everything)
    if trace.dropped:
        branch = tree.add(_text(("Left out on the way", _LABEL)))
        for reason, count in trace.dropped.items():
            branch.add(_text(f"{count} × {reason}"))
    return tree


def trace_text(trace: Trace) -> str:
    """The same as plain text: nothing cut, nothing that commands a terminal."""
    from io import StringIO

    from rich.console import Console

    plain = Console(file=StringIO(), width=_WIDEST, markup=False, highlight=False, emoji=False)
    with plain.capture() as capture:
        plain.print(trace_tree(trace))
    return safe("\n".join(line.rstrip() for line in capture.get().split("\n")))


_WIDEST = 100_000


def _text(*parts: str | tuple[str, str]) -> Text:
    """Texts with their styles, made harmless; each has its own style alone."""
    from rich.text import Text

    styled = ((part, "") if isinstance(part, str) else part for part in parts)
    return Text.assemble(*((safe(said), style) for said, style in styled))


def _fields(fields: Mapping[str, str | None], width: int) -> Iterator[Text]:
    """The fields that there are, below one another."""
    for name, value in fields.items():
        if value is not None:
            yield _text(f"{name:{width}}{value}")


def _about(trace: Trace) -> Iterator[Text]:
    yield _text(f"Session    {trace.explain_id}")
    error = f": {one_line(trace.error)}" if trace.error else ""
    status = (trace.status or "open", _STATUS.get(trace.status, "red"))
    yield _text("Status     ", status, error)
    if trace.questioned:
        yield _text((f"Standing   called into question: {one_line(trace.questioned)}", "red"))
    usage = trace.usage
    thought = " ({reasoning_tokens:,} of them thinking)" if usage.get("reasoning_tokens") else ""
    spent = f"{{input_tokens:,}} tokens in, {{output_tokens:,}} out{thought}, {{calls}} calls"
    yield from _fields(
        {
            "Time": f"{clock(trace.started)} UTC{_took(trace.started, trace.ended)}",
            "Mode": one_line(f"{trace.mode}, {knowledge_text(trace)}"),
            "Chosen": trace.choice_text or None,
            **{f"Step {step.number}": one_line(step.words) for step in trace.step_answers},
            "Filters": trace.filters_text or None,
            "Agents": agents_text(trace),
            "Usage": spent.format_map(usage) if usage.get("calls") else None,
            "Concepts": trace.concepts_text if trace.concepts else None,
            "Entities": matches_text(trace) or None,
            "Confidence": one_line(trace.confidence_text) or None,
        },
        width=11,
    )


def _took(started: str, ended: str) -> str:
    took = seconds(started, ended)
    return f", {took} s" if took else ""


# --- the answer and what it rests on ---


def _answer(tree: Tree, trace: Trace, most: int | None, everything: bool) -> None:
    if not trace.sentences:
        said = one_line(trace.answer, most) if trace.answer else "none"
        tree.add(_text(("Answer", _LABEL), f"  {said}"))
        return
    branch = tree.add(_text(("Answer", _LABEL)))
    items = {item.iri: item for item in trace.selected}
    left = most
    for number, sentence in enumerate(trace.sentences, 1):
        if left is not None and left <= 0:
            branch.add(_text((f"… {len(trace.sentences) - number + 1} more sentences", _FAINT)))
            break
        uncited = ("" if sentence.citations else " [no citation]", "red")
        verdict = f" [{verdict_text(sentence)}]" if sentence.verdict else ""
        judged = (verdict, _VERDICT.get(sentence.verdict, "red"))
        line = _text(f"{number}. ").append(_sentence(sentence, left))
        leaf = branch.add(line.append(_text(uncited, judged)))
        left = None if left is None else left - len(sentence.text)
        _grounds(leaf, sentence, items, everything)


def _sentence(sentence: TraceSentence, most: int | None) -> Text:
    """What the sentence says, its mark-up read where it is a quote, cut where it is longer."""
    if (cited := quoted(sentence)) is None:
        return _text(one_line(sentence.text, most))
    said = terminal_text(cited)
    if is_code(cited):
        said = _text("\n").append(said)
    if most is not None:
        said.truncate(most, overflow="ellipsis")
    return said


def _grounds(
    tree: Tree, sentence: TraceSentence, items: Mapping[str, TraceItem], everything: bool
) -> None:
    """What the sentence rests on; an item that leads to the same places only is named."""
    shown: set[tuple[str, int | None, int, int]] = set()
    for selection in sentence.edge_selections:
        item = items[selection]
        cited = [c for c in sentence.citations if c.edge_selection == selection]
        places = {(c.document, c.page, c.start, c.end) for c in cited}
        if item.kind != "edge" and places <= shown and not everything:
            tree.add(_text((f"also in {item_text(item)}", _FAINT)))
        else:
            _item(tree, item, cited, everything)
        shown |= places


def _uncited(tree: Tree, trace: Trace, everything: bool) -> None:
    used = {s for sentence in trace.sentences for s in sentence.edge_selections}
    rest = [item for item in trace.selected if item.iri not in used]
    if not rest:
        return
    branch = tree.add(_text((f"Selected, but in no sentence ({len(rest)})", _LABEL)))
    if len(rest) > _LISTED and not everything:
        branch.add(_text(f"{kinds_text(rest)}{_HINT}"))
    else:
        for item in rest:
            _item(branch, item, item.evidence if everything else (), everything)


def _item(
    tree: Tree, item: TraceItem, places: Sequence[TraceQuotation], whole: bool = False
) -> None:
    branch = tree.add(_text((item_text(item), _ITEM), (f"   {_measured(item)}", _FAINT)))
    if item.reasoning:
        branch.add(_text(f"because: {one_line(item.reasoning)}"))
    for place in places:
        leaf = branch.add(terminal_quote(place, _QUOTE))
        if place.way:
            leaf.add(_text(f"by way of {way_text(place)}"))
        leaf.add(_text(place_text(place)))
        if origin := origin_text(place):
            leaf.add(_text((origin, _FAINT)))
        if whole:
            leaf.add(_text((place.chunk, _FAINT)))
    if item.bridge is not None:
        branch.add(_text(bridge_text(item.bridge)))


def _measured(item: TraceItem) -> str:
    standing = standing_text(item)
    return f"score {item.score:.2f}{f', {standing}' if standing else ''}"


def _influence(tree: Tree, trace: Trace) -> None:
    """What the answer depends on, the heaviest first, where that was measured."""
    if (found := trace.influence) is None:
        return
    measures = (f", {name.replace('-', ' ')} {value:.2f}" for name, value in found.measures.items())
    told = f"  {found.method}, {found.runs} runs{''.join(measures)}"
    branch = tree.add(_text(("Influence", _LABEL), told))
    items = {item.iri: item for item in trace.selected}
    cited = {s for sentence in trace.sentences for s in sentence.edge_selections}
    numbers = {sentence.iri: n for n, sentence in enumerate(trace.sentences, 1)}
    for iri in filter(items.__contains__, found.above):
        where = [n for s, n in numbers.items() if iri in found.sentences.get(s, {})]
        label = (one_line(items[iri].words), _ITEM)
        standing = (f"   {_standing(iri in cited, where)}", _FAINT)
        branch.add(_text(f"{found.weights[iri]:5.2f}  ", label, standing))
    if not found.above:
        branch.add(_text("no single item has influence above the noise"))
    idle = sum(iri in cited and iri not in found.above for iri in found.weights)
    if idle:
        branch.add(_text((f"{idle} cited without influence of their own", _FAINT)))


def _standing(cited: bool, sentences: list[int]) -> str:
    said = "cited" if cited else "not cited"
    if not sentences:
        return said
    what = "sentences" if len(sentences) > 1 else "sentence"
    return f"{said}; {what} {', '.join(map(str, sentences))}"


# --- how it came about ---


def _map(tree: Tree, trace: Trace, everything: bool) -> None:
    """The ratings and the batches of reports with their points, best first."""
    if trace.ratings:
        branch = tree.add(_text(("Ratings", _LABEL)))
        _some(branch, [rating_text(r) for r in trace.ratings], everything)
    if not trace.batches:
        return
    points = many(sum(len(batch.points) for batch in trace.batches), "point")
    batches = many(len(trace.batches), "batch", "batches")
    branch = tree.add(_text(("Map", _LABEL), f"  {batches}, {points}"))
    read = {item.label: label_text(item) for item in trace.selected}
    for number, batch in enumerate(trace.batches, 1):
        leaf = branch.add(_text(batch_text(batch, number)))
        if batch.error:
            leaf.add(_text((one_line(batch.error), "red")))
        best = sorted(batch.points, key=lambda point: -point.score)
        lines = [point_text(replace(each, text=read.get(each.text, each.text))) for each in best]
        _some(leaf, lines, everything)


def _some(tree: Tree, lines: list[str], everything: bool) -> None:
    shown = lines if everything else lines[:_LISTED_POINTS]
    for line in shown:
        tree.add(_text(line))
    if len(lines) > len(shown):
        tree.add(_text((f"… {len(lines) - len(shown)} more{_HINT}", _FAINT)))


def _rejected(tree: Tree, trace: Trace, everything: bool) -> None:
    points, others = _apart(trace.selected)
    left_points, left = _apart(trace.rejected)
    drawn = "the others are behind points" if points else f"{len(others)} selected"
    told = f"  {retrieved_text(trace)} retrieved, {drawn}"
    branch = tree.add(_text(("Candidates", _LABEL), told))
    hint = "" if everything else _HINT
    if left:
        branch.add(_text(f"not selected: {rejection_text(left)}{hint}"))
    if points or left_points:
        made = f"{len(points) + len(left_points)} points drawn, {len(points)} selected"
        why = f"; not selected: {rejection_text(left_points)}{hint}" if left_points else ""
        branch.add(_text(f"{made}{why}"))
    for item in trace.rejected if everything else ():
        why = f"   {_measured(item)}: {item.reasoning}"
        branch.add(_text(f"{item.rank}. {item_text(item)}", (why, _FAINT)))


def _apart(items: Sequence[TraceItem]) -> tuple[list[TraceItem], list[TraceItem]]:
    """The points among them, and what was retrieved."""
    points = [item for item in items if item.kind == "point"]
    return points, [item for item in items if item.kind != "point"]


def _action(branch: Tree, action: TraceAction, everything: bool) -> None:
    """A question of a DRIFT search, with those that its answer led to below it; ``everything``
    shows each point as well."""
    node = branch.add(_asked(action))
    if everything and action.reasoning:
        node.add(_text((f"promise {_score(action.promise)}: {action.reasoning}", _FAINT)))
    for point in action.points if everything else ():
        why = f"  not used: {one_line(point.rejected)}" if point.rejected else ""
        said = f"{_score(point.score)}  {one_line(point.text)}"
        node.add(_text((said, _QUOTE), (why, _FAINT)))
    for child in action.children:
        _action(node, child, everything)


def _asked(action: TraceAction) -> Text:
    if action.status == "pruned":
        why = f"   promise {_score(action.promise)}: {action.reason}"
        return _text((one_line(action.query), _FAINT), (why, _FAINT))
    names = {"question": "The question itself", "fold": f"Reports, fold {action.number}"}
    name = (names.get(action.kind) or one_line(action.query), _ITEM)
    status = (action.status, _ACTION.get(action.status, "red"))
    facts = ("".join(f", {fact}" for fact in _facts(action)), _FAINT)
    return _text(name, "   ", status, facts)


def _facts(action: TraceAction) -> Iterator[str]:
    if action.promise is not None:
        yield f"promise {_score(action.promise)}"
    if action.score is not None:
        yield f"score {_score(action.score)}"
    yield f"{action.retrieved} retrieved, {action.shown} read, {len(action.points)} points"
    if action.proposed_again:
        yield f"proposed {action.proposed_again + 1} times"
    if action.reason:
        yield one_line(action.reason)


def _score(score: float | None) -> str:
    return "–" if score is None else f"{score:.2f}"


def _steps(tree: Tree, trace: Trace, everything: bool) -> None:
    branch = tree.add(_text(("Steps", _LABEL)))
    for step in trace.steps:
        took = _took(step.started, step.ended)
        branch.add(_text(f"{step.label} by {', '.join(step.agents)}{took}"))
    if trace.calls:
        calls = branch.add(_text(f"Calls ({len(trace.calls)})"))
        for alike in _calls(trace.calls, everything):
            calls.add(_call(alike))


def _calls(calls: Sequence[TraceCall], everything: bool) -> list[list[TraceCall]]:
    """The calls one by one; where they are many, those of one kind that went well together."""
    if everything or len(calls) <= _LISTED_CALLS:
        return [[call] for call in calls]
    found: dict[tuple[str, ...], list[TraceCall]] = {}
    for call in calls:
        key = (call.iri,) if call.error else (call.label, call.agent)
        found.setdefault(key, []).append(call)
    return list(found.values())


def _call(alike: Sequence[TraceCall]) -> Text:
    first, times = alike[0], f"{len(alike)} × " if len(alike) > 1 else ""
    sent, got = sum(c.input_tokens for c in alike), sum(c.output_tokens for c in alike)
    took = sum(c.milliseconds for c in alike)
    said = f"{times}{first.label} by {first.agent}: {sent:,} in, {got:,} out, {took:,} ms"
    return _text(said, (f"  {one_line(first.error)}" if first.error else "", "red"))


# --- sources ---


def source_tree(source: SourceTree, *, content: int | None = None) -> Tree:
    """A document as a tree; ``content`` shows so many characters of each chunk's text."""
    from rich.tree import Tree

    document = source.document
    tree = Tree(_text((document.title, _LABEL)), guide_style=_FAINT)
    standing = "" if document.standing else "  (no longer stands)"
    fields: dict[str, str | None] = {
        "Path": f"{document.path}{standing}",
        "Document": document.document,
        "Type": f"{document.media_type}, {source.characters:,} characters",
        "Taken in": f"{clock(document.taken)} UTC",
    }
    for line in _fields(fields, width=12):
        tree.add(line)
    for page in source.pages:
        branch = tree
        if page.number is not None:
            branch = tree.add(_text((f"Page {page.number}", _LABEL)))
        _chunks(branch, page, document.path, content)
    return tree


def _chunks(tree: Tree, page: SourcePage, path: str, content: int | None) -> None:
    for chunk in page.chunks:
        where = f"  characters {chunk.start}–{chunk.end}, {chunk.tokens} tokens"
        heading = f", {one_line(chunk.heading)}" if chunk.heading else ""
        branch = tree.add(_text((chunk.label, _LABEL), where, (heading, _FAINT)))
        branch.add(_text((chunk.chunk, _FAINT)))
        if content is not None:
            branch.add(_text((one_line(chunk.text, content), _QUOTE)))
        _statements(branch, chunk, path)


def _statements(tree: Tree, chunk: SourceChunk, path: str) -> None:
    if chunk.entities:
        tree.add(_text(f"Entities ({len(chunk.entities)}): {', '.join(chunk.entities)}"))
    branch = tree.add(_text(f"Edges ({len(chunk.edges)})"))
    by_place: dict[tuple[int, int], dict[str, str]] = {}
    quotes: dict[tuple[int, int], Text] = {}
    for edge in chunk.edges:
        labels = (edge.subject_label, edge.predicate_label, edge.object_label)
        place = (edge.start, edge.end)
        line = " — ".join(map(one_line, labels)) + _led(edge)
        by_place.setdefault(place, {}).setdefault(line, origin_text(edge))
        quotes[place] = _extracted(edge, path)
    for (start, end), edges in by_place.items():
        leaf = branch.add(quotes[start, end])
        for line, origin in edges.items():
            item = leaf.add(_text((line, _ITEM)))
            if origin:
                item.add(_text((origin, _FAINT)))
    if chunk.claims:
        branch = tree.add(_text(f"Claims ({len(chunk.claims)})"))
    for claim in chunk.claims:
        leaf = branch.add(_extracted(claim, path))
        said = f"{claim.type} ({claim.status}): {one_line(claim.description)}"
        leaf.add(_text((said, _ITEM)))


def _led(edge: ExtractedEdge) -> str:
    """What the ontology makes of the edge."""
    meant = f"  as “{one_line(edge.property)}”" if edge.property else ""
    return meant + (f"  (outside the ontology: {one_line(edge.outside)})" if edge.outside else "")


class _QuoteWords(NamedTuple):
    quote: str
    path: str
    segment_kind: SegmentKind | None


def _extracted(found: ExtractedEdge | SourceClaim, path: str) -> Text:
    """The quote that something was extracted from, and where it stands."""
    quote = terminal_quote(_QuoteWords(found.quote, path, found.segment_kind), _QUOTE)
    return quote.append(_text((f"  {found.start}–{found.end}", _FAINT)))
