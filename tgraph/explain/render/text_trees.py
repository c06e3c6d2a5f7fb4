"""Traces and sources as trees that a person reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tgraph.explain.render.answer import find_verbatim_quote
from tgraph.explain.render.markup import is_code, terminal_quote, terminal_text
from tgraph.explain.render.wording import (
    actions_text,
    agents_text,
    batch_text,
    bridge_text,
    elapsed_seconds,
    format_clock,
    item_text,
    judged_text,
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
from tgraph.model import ComputedResult, SegmentKind, WitnessPlace
from tgraph.rendering import escape_controls, format_count, one_line
from tgraph.rendering import place_text as shown_place

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from tgraph.explain.trace.documents import (
        DocumentSummary,
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
_LONGEST_QUOTE = 120
_HINT = "  (--all lists them)"

_VERDICT = {"supported": "green", "quoted": "green", "partly": "yellow", "undecided": "yellow"}
_STATUS = {"completed": "green", "no-evidence": "yellow", "context-only": "green"}
_ACTION = {"answered": "green", "unanswered": "yellow", "failed": "red"}


def trace_tree(trace: Trace, *, everything: bool = False, most: int | None = None) -> Tree:
    """The session as a tree; ``everything`` lists rejected candidates, ``most`` cuts the answer."""
    from rich.tree import Tree

    tree = Tree(_styled_text((trace.question, _LABEL)), guide_style=_FAINT)
    for line in _session_lines(trace):
        tree.add(line)
    _add_answer(tree, trace, most, everything)
    for note in trace.notes:
        branch = tree.add(_styled_text(("Note  ", _LABEL), (one_line(note.text), "yellow")))
        for place in note.places:
            branch.add(terminal_quote(place, _QUOTE)).add(_styled_text(place_text(place)))
    if trace.computed is not None:
        _add_computed(tree, trace.computed, everything)
    _add_uncited(tree, trace, everything)
    _add_influence(tree, trace)
    _add_map(tree, trace, everything)
    _add_rejected(tree, trace, everything)
    if trace.actions is not None:
        head = _styled_text(("Actions", _LABEL), f"  {actions_text(trace.actions)}")
        _add_action(tree.add(head), trace.actions, everything)
    _add_steps(tree, trace, everything)
    if trace.dropped:
        branch = tree.add(_styled_text(("Left out", _LABEL)))
        for reason, count in trace.dropped.items():
            branch.add(_styled_text(f"{count} × {reason}"))
    return tree


def trace_text(trace: Trace) -> str:
    """Return a trace as plain text, complete and without terminal control characters."""
    from io import StringIO

    from rich.console import Console

    plain = Console(file=StringIO(), width=_WIDEST, markup=False, highlight=False, emoji=False)
    with plain.capture() as capture:
        plain.print(trace_tree(trace))
    return escape_controls("\n".join(line.rstrip() for line in capture.get().split("\n")))


_WIDEST = 100_000


def _styled_text(*parts: str | tuple[str, str]) -> Text:
    """Return safe text assembled from parts, each with its own style."""
    from rich.text import Text

    styled = ((part, "") if isinstance(part, str) else part for part in parts)
    return Text.assemble(*((escape_controls(text), style) for text, style in styled))


def _field_lines(fields: Mapping[str, str | None], width: int) -> Iterator[Text]:
    """Yield a line for every available field."""
    for name, value in fields.items():
        if value is not None:
            yield _styled_text(f"{name:{width}}{value}")


def _session_lines(trace: Trace) -> Iterator[Text]:
    yield _styled_text(f"Session    {trace.explain_id}")
    error = f": {one_line(trace.error)}" if trace.error else ""
    status = (trace.status or "open", _STATUS.get(trace.status, "red"))
    yield _styled_text("Status     ", status, error)
    if trace.questioned:
        yield _styled_text(
            (f"Standing   called into question: {one_line(trace.questioned)}", "red")
        )
    usage = trace.usage
    thought = (
        " ({reasoning_tokens:,} of them for reasoning)" if usage.get("reasoning_tokens") else ""
    )
    spent = f"{{input_tokens:,}} tokens in, {{output_tokens:,}} out{thought}, {{calls}} calls"
    yield from _field_lines(
        {
            "Time": f"{format_clock(trace.started)} UTC"
            f"{_duration_suffix(trace.started, trace.ended)}",
            "Mode": one_line(f"{trace.mode}, {knowledge_text(trace)}"),
            "Chosen": trace.choice_text or None,
            **{f"Step {step.number}": one_line(step.words) for step in trace.step_answers},
            "Filters": trace.filters_text or None,
            "Agents": agents_text(trace),
            "Usage": spent.format_map(usage) if usage.get("calls") else None,
            "Concepts": trace.concepts_text if trace.concepts else None,
            "Entities": matches_text(trace) or None,
            "Confidence": one_line(trace.confidence_text) or None,
            "Verified": judged_text(trace) or None,
        },
        width=11,
    )


def _duration_suffix(started: str, ended: str) -> str:
    took = elapsed_seconds(started, ended)
    return f", {took} s" if took else ""


# --- the answer and what it rests on ---


def _add_answer(tree: Tree, trace: Trace, most: int | None, everything: bool) -> None:
    if not trace.sentences:
        answer_text = one_line(trace.answer, most) if trace.answer else "none"
        tree.add(_styled_text(("Answer", _LABEL), f"  {answer_text}"))
        return
    branch = tree.add(_styled_text(("Answer", _LABEL)))
    items = {item.iri: item for item in trace.selected}
    remaining = most
    for number, sentence in enumerate(trace.sentences, 1):
        if remaining is not None and remaining <= 0:
            branch.add(
                _styled_text((f"… {len(trace.sentences) - number + 1} more sentences", _FAINT))
            )
            break
        uncited = ("" if sentence.citations else " [no citation]", "red")
        verdict = f" [{verdict_text(sentence)}]" if sentence.verdict else ""
        judged = (verdict, _VERDICT.get(sentence.verdict, "red"))
        line = _styled_text(f"{number}. ").append(_sentence_text(sentence, remaining))
        leaf = branch.add(line.append(_styled_text(uncited, judged)))
        remaining = None if remaining is None else remaining - len(sentence.text)
        _add_grounds(leaf, trace, sentence, items, everything)


def _sentence_text(sentence: TraceSentence, most: int | None) -> Text:
    """Return sentence text, with markup of quotes parsed, truncated beyond ``most`` characters."""
    if (cited := find_verbatim_quote(sentence)) is None:
        return _styled_text(one_line(sentence.text, most))
    sentence_text = terminal_text(cited)
    if is_code(cited):
        sentence_text = _styled_text("\n").append(sentence_text)
    if most is not None:
        sentence_text.truncate(most, overflow="ellipsis")
    return sentence_text


def _add_grounds(
    tree: Tree,
    trace: Trace,
    sentence: TraceSentence,
    items: Mapping[str, TraceItem],
    everything: bool,
) -> None:
    """Add items supporting a sentence; items leading only to places already shown are just
    named."""
    shown_places: set[tuple[str, int | None, int, int]] = set()
    for selection in sentence.edge_selections:
        item = items[selection]
        cited = [c for c in sentence.citations if c.edge_selection == selection]
        places = {(c.document, c.page, c.start, c.end) for c in cited}
        if item.kind != "edge" and places <= shown_places and not everything:
            tree.add(_styled_text((f"also in {item_text(item)}", _FAINT)))
        else:
            _add_item(tree, trace, item, cited, everything)
        shown_places |= places


def _add_computed(tree: Tree, computed: ComputedResult, everything: bool) -> None:
    """Add the query, the rows of its result with their characters, and what was not chosen."""
    if computed.sparql:
        head = f"  likelihood {computed.likelihood:.2f}: {one_line(computed.reasons)}"
        branch = tree.add(_styled_text(("Query", _LABEL), head))
        from rich.text import Text

        branch.add(Text("\n").join(map(_styled_text, computed.sparql.splitlines())))
        _add_rows(tree, computed, everything)
    if computed.unchosen:
        count = format_count(len(computed.unchosen), "other query", "other queries")
        branch = tree.add(_styled_text((f"Not chosen ({count})", _LABEL)))
        for query in computed.unchosen if everything else computed.unchosen[:1]:
            why = f"likelihood {query.likelihood:.2f}, {one_line(query.rejection)}"
            branch.add(_styled_text(why)).add(_styled_text(one_line(query.sparql)))
        if len(computed.unchosen) > 1 and not everything:
            branch.add(_styled_text((f"… {len(computed.unchosen) - 1} more{_HINT}", _FAINT)))


def _add_rows(tree: Tree, computed: ComputedResult, everything: bool) -> None:
    head = " | ".join(map(one_line, computed.columns))
    count = format_count(len(computed.rows), "row")
    branch = tree.add(_styled_text(("Result", _LABEL), f"  {count}: {head}"))
    visible = computed.rows if everything else computed.rows[:_LISTED]
    for row in visible:
        leaf = branch.add(_styled_text((" | ".join(one_line(c.text) for c in row.cells), _ITEM)))
        places = dict.fromkeys(w.place for w in row.witnesses if w.place is not None)
        for place in [*places] if everything else [*places][:_LISTED_POINTS]:
            quote = one_line(place.quote, None if everything else _LONGEST_QUOTE)
            leaf.add(_styled_text((f"“{quote}”", _QUOTE), f" {_where_text(place)}"))
        if len(places) > _LISTED_POINTS and not everything:
            leaf.add(_styled_text((f"… {len(places) - _LISTED_POINTS} more{_HINT}", _FAINT)))
    if len(visible) < len(computed.rows):
        remainder = f"… {len(computed.rows) - len(visible)} more{_HINT}"
        branch.add(_styled_text((remainder, _FAINT)))


def _where_text(place: WitnessPlace) -> str:
    return escape_controls(shown_place(place.path, place.page, place.start, place.end))


def _add_uncited(tree: Tree, trace: Trace, everything: bool) -> None:
    used = {s for sentence in trace.sentences for s in sentence.edge_selections}
    uncited_items = [item for item in trace.selected if item.iri not in used]
    if not uncited_items:
        return
    branch = tree.add(
        _styled_text((f"Selected, but in no sentence ({len(uncited_items)})", _LABEL))
    )
    if len(uncited_items) > _LISTED and not everything:
        branch.add(_styled_text(f"{kinds_text(uncited_items)}{_HINT}"))
    else:
        for item in uncited_items:
            _add_item(branch, trace, item, item.evidence if everything else (), everything)


def _add_item(
    tree: Tree, trace: Trace, item: TraceItem, places: Sequence[TraceQuotation], whole: bool = False
) -> None:
    branch = tree.add(
        _styled_text((item_text(item), _ITEM), (f"   {_score_summary(trace, item)}", _FAINT))
    )
    if item.reasoning:
        branch.add(_styled_text(f"reason: {one_line(item.reasoning)}"))
    for place in places:
        leaf = branch.add(terminal_quote(place, _QUOTE))
        if place.way:
            leaf.add(_styled_text(f"by way of {way_text(place)}"))
        leaf.add(_styled_text(place_text(place)))
        if origin := origin_text(place):
            leaf.add(_styled_text((origin, _FAINT)))
        if whole:
            leaf.add(_styled_text((place.chunk, _FAINT)))
    if item.bridge is not None:
        branch.add(_styled_text(bridge_text(item.bridge)))


def _score_summary(trace: Trace, item: TraceItem) -> str:
    standing = standing_text(item)
    name = trace.name_scores([item])
    return f"{name} {item.score:.2f}{f', {standing}' if standing else ''}"


def _add_influence(tree: Tree, trace: Trace) -> None:
    """Add influential items, heaviest first, if influence was measured."""
    if (influence := trace.influence) is None:
        return
    measures = (
        f", {name.replace('-', ' ')} {value:.2f}" for name, value in influence.measures.items()
    )
    summary = f"  {influence.method}, {influence.runs} runs{''.join(measures)}"
    branch = tree.add(_styled_text(("Influence", _LABEL), summary))
    items = {item.iri: item for item in trace.selected}
    cited = {s for sentence in trace.sentences for s in sentence.edge_selections}
    numbers = {sentence.iri: n for n, sentence in enumerate(trace.sentences, 1)}
    for iri in filter(items.__contains__, influence.above):
        where = [n for s, n in numbers.items() if iri in influence.sentences.get(s, {})]
        label = (one_line(items[iri].words), _ITEM)
        standing = (f"   {_describe_citation(iri in cited, where)}", _FAINT)
        branch.add(_styled_text(f"{influence.weights[iri]:5.2f}  ", label, standing))
    if not influence.above:
        branch.add(_styled_text("no single item has influence above the noise"))
    idle = sum(iri in cited and iri not in influence.above for iri in influence.weights)
    if idle:
        branch.add(_styled_text((f"{idle} cited without influence of their own", _FAINT)))


def _describe_citation(cited: bool, sentences: list[int]) -> str:
    description = "cited" if cited else "not cited"
    if not sentences:
        return description
    noun = "sentences" if len(sentences) > 1 else "sentence"
    return f"{description}; {noun} {', '.join(map(str, sentences))}"


# --- how it came about ---


def _add_map(tree: Tree, trace: Trace, everything: bool) -> None:
    """Add ratings, and report batches with their points, best first."""
    if trace.ratings:
        branch = tree.add(_styled_text(("Ratings", _LABEL)))
        _add_lines(branch, [rating_text(r) for r in trace.ratings], everything)
    if not trace.batches:
        return
    points = format_count(sum(len(batch.points) for batch in trace.batches), "point")
    batches = format_count(len(trace.batches), "batch", "batches")
    branch = tree.add(_styled_text(("Map", _LABEL), f"  {batches}, {points}"))
    read = {item.label: label_text(item) for item in trace.selected}
    for number, batch in enumerate(trace.batches, 1):
        leaf = branch.add(_styled_text(batch_text(batch, number)))
        if batch.error:
            leaf.add(_styled_text((one_line(batch.error), "red")))
        best = sorted(batch.points, key=lambda point: -point.score)
        lines = [
            point_text(replace(best_point, text=read.get(best_point.text, best_point.text)))
            for best_point in best
        ]
        _add_lines(leaf, lines, everything)


def _add_lines(tree: Tree, lines: list[str], everything: bool) -> None:
    visible_lines = lines if everything else lines[:_LISTED_POINTS]
    for line in visible_lines:
        tree.add(_styled_text(line))
    if len(lines) > len(visible_lines):
        tree.add(_styled_text((f"… {len(lines) - len(visible_lines)} more{_HINT}", _FAINT)))


def _add_rejected(tree: Tree, trace: Trace, everything: bool) -> None:
    points, retrieved_items = _split_points(trace.selected)
    left_points, rejected_items = _split_points(trace.rejected)
    drawn = "other items are used through points" if points else f"{len(retrieved_items)} selected"
    summary = f"  {retrieved_text(trace)} retrieved, {drawn}"
    branch = tree.add(_styled_text(("Candidates", _LABEL), summary))
    hint = "" if everything else _HINT
    if rejected_items:
        branch.add(_styled_text(f"not selected: {rejection_text(rejected_items)}{hint}"))
    if points or left_points:
        point_summary = f"{len(points) + len(left_points)} points drawn, {len(points)} selected"
        why = f"; not selected: {rejection_text(left_points)}{hint}" if left_points else ""
        branch.add(_styled_text(f"{point_summary}{why}"))
    for item in trace.rejected if everything else ():
        why = f"   {_score_summary(trace, item)}: {item.reasoning}"
        branch.add(_styled_text(f"{item.rank}. {item_text(item)}", (why, _FAINT)))


def _split_points(items: Sequence[TraceItem]) -> tuple[list[TraceItem], list[TraceItem]]:
    """Return points and retrieved items separately."""
    points = [item for item in items if item.kind == "point"]
    return points, [item for item in items if item.kind != "point"]


def _add_action(branch: Tree, action: TraceAction, everything: bool) -> None:
    """Add a DRIFT search question, with follow-up questions below; ``everything`` also shows
    points."""
    node = branch.add(_action_line(action))
    if everything and action.reasoning:
        node.add(
            _styled_text((f"promise {_format_score(action.promise)}: {action.reasoning}", _FAINT))
        )
    for point in action.points if everything else ():
        why = f"  not used: {one_line(point.rejected)}" if point.rejected else ""
        point_line = f"{_format_score(point.score)}  {one_line(point.text)}"
        node.add(_styled_text((point_line, _QUOTE), (why, _FAINT)))
    for child in action.children:
        _add_action(node, child, everything)


def _action_line(action: TraceAction) -> Text:
    if action.status == "pruned":
        why = f"   promise {_format_score(action.promise)}: {action.reason}"
        return _styled_text((one_line(action.query), _FAINT), (why, _FAINT))
    names = {"question": "The question itself", "fold": f"Reports, fold {action.number}"}
    name = (names.get(action.kind) or one_line(action.query), _ITEM)
    status = (action.status, _ACTION.get(action.status, "red"))
    facts = ("".join(f", {fact}" for fact in _action_facts(action)), _FAINT)
    return _styled_text(name, "   ", status, facts)


def _action_facts(action: TraceAction) -> Iterator[str]:
    if action.promise is not None:
        yield f"promise {_format_score(action.promise)}"
    if action.score is not None:
        yield f"score {_format_score(action.score)}"
    yield f"{action.retrieved} retrieved, {action.shown} read, {len(action.points)} points"
    if action.proposed_again:
        yield f"proposed {action.proposed_again + 1} times"
    if action.reason:
        yield one_line(action.reason)


def _format_score(score: float | None) -> str:
    return "–" if score is None else f"{score:.2f}"


def _add_steps(tree: Tree, trace: Trace, everything: bool) -> None:
    branch = tree.add(_styled_text(("Steps", _LABEL)))
    for step in trace.steps:
        took = _duration_suffix(step.started, step.ended)
        branch.add(_styled_text(f"{step.label} by {', '.join(step.agents)}{took}"))
    if trace.calls:
        calls = branch.add(_styled_text(f"Calls ({len(trace.calls)})"))
        for alike in _group_calls(trace.calls, everything):
            calls.add(_call_line(alike))


def _group_calls(calls: Sequence[TraceCall], everything: bool) -> list[list[TraceCall]]:
    """Return calls in groups: single calls, or, for many calls, successful calls grouped by
    kind."""
    if everything or len(calls) <= _LISTED_CALLS:
        return [[call] for call in calls]
    groups: dict[tuple[str, ...], list[TraceCall]] = {}
    for call in calls:
        key = (call.iri,) if call.error else (call.label, call.agent)
        groups.setdefault(key, []).append(call)
    return list(groups.values())


def _call_line(alike: Sequence[TraceCall]) -> Text:
    first, times = alike[0], f"{len(alike)} × " if len(alike) > 1 else ""
    sent, got = sum(c.input_tokens for c in alike), sum(c.output_tokens for c in alike)
    took = sum(c.milliseconds for c in alike)
    call_text = f"{times}{first.label} by {first.agent}: {sent:,} in, {got:,} out, {took:,} ms"
    return _styled_text(call_text, (f"  {one_line(first.error)}" if first.error else "", "red"))


# --- sources ---


def source_tree(source: SourceTree, *, content: int | None = None) -> Tree:
    """Return a document tree; ``content`` limits displayed characters per chunk text."""
    from rich.tree import Tree

    document = source.document
    tree = Tree(_styled_text((document.title, _LABEL)), guide_style=_FAINT)
    standing = "" if document.standing else "  (no longer stands)"
    fields: dict[str, str | None] = {
        "Path": f"{document.path}{standing}",
        "Document": document.document,
        "Type": f"{document.media_type}, {source.characters:,} characters",
        "Date": _date_text(document),
        "Taken in": f"{format_clock(document.taken)} UTC",
    }
    for line in _field_lines(fields, width=12):
        tree.add(line)
    for page in source.pages:
        branch = tree
        if page.number is not None:
            branch = tree.add(_styled_text((f"Page {page.number}", _LABEL)))
        _add_chunks(branch, page, document.path, content)
    return tree


def _date_text(document: DocumentSummary) -> str | None:
    """Return the document's date as understood and as stated, with what is doubtful."""
    if not document.date:
        return None
    stated = f" (stated as {document.date!r})" if document.calendar_date != document.date else ""
    return document.date_note or f"{document.calendar_date}{stated}"


def _add_chunks(tree: Tree, page: SourcePage, path: str, content: int | None) -> None:
    for chunk in page.chunks:
        where = f"  characters {chunk.start}–{chunk.end}, {chunk.tokens} tokens"
        heading = f", {one_line(chunk.heading)}" if chunk.heading else ""
        branch = tree.add(_styled_text((chunk.label, _LABEL), where, (heading, _FAINT)))
        branch.add(_styled_text((chunk.chunk, _FAINT)))
        if content is not None:
            branch.add(_styled_text((one_line(chunk.text, content), _QUOTE)))
        _add_statements(branch, chunk, path)


def _add_statements(tree: Tree, chunk: SourceChunk, path: str) -> None:
    if chunk.entities:
        tree.add(_styled_text(f"Entities ({len(chunk.entities)}): {', '.join(chunk.entities)}"))
    branch = tree.add(_styled_text(f"Edges ({len(chunk.edges)})"))
    by_place: dict[tuple[int, int], dict[str, str]] = {}
    quotes: dict[tuple[int, int], Text] = {}
    for edge in chunk.edges:
        labels = (edge.subject_label, edge.predicate_label, edge.object_label)
        place = (edge.start, edge.end)
        line = " — ".join(map(one_line, labels)) + _ontology_note(edge)
        by_place.setdefault(place, {}).setdefault(line, origin_text(edge))
        quotes[place] = _quote_line(edge, path)
    for (start, end), edges in by_place.items():
        leaf = branch.add(quotes[start, end])
        for line, origin in edges.items():
            item = leaf.add(_styled_text((line, _ITEM)))
            if origin:
                item.add(_styled_text((origin, _FAINT)))
    if chunk.claims:
        branch = tree.add(_styled_text(f"Claims ({len(chunk.claims)})"))
    for claim in chunk.claims:
        leaf = branch.add(_quote_line(claim, path))
        claim_text = f"{claim.type} ({claim.status}): {one_line(claim.description)}"
        leaf.add(_styled_text((claim_text, _ITEM)))


def _ontology_note(edge: ExtractedEdge) -> str:
    """Return a note on the edge's ontology property, or why the edge lies outside the ontology."""
    property_note = f"  as “{one_line(edge.property)}”" if edge.property else ""
    return property_note + (
        f"  (outside the ontology: {one_line(edge.outside)})" if edge.outside else ""
    )


class _QuoteWords(NamedTuple):
    quote: str
    path: str
    segment_kind: SegmentKind | None


def _quote_line(found: ExtractedEdge | SourceClaim, path: str) -> Text:
    """Return an extraction's quote plus character range."""
    quote = terminal_quote(_QuoteWords(found.quote, path, found.segment_kind), _QUOTE)
    return quote.append(_styled_text((f"  {found.start}–{found.end}", _FAINT)))
