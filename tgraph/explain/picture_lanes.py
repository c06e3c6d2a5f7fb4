"""The picture as a whole: what came about, in what step, by whom, with as many of a kind as there
are in one shape.

Three lanes: entities, the activities that generated them, and the agents that these were associated
with. What came last is at the top. An arrow that a longer way says as well is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tgraph.explain.picture import ASSOCIATED, DERIVED, GENERATED, INFORMED, USED, Picture
from tgraph.explain.picture_panels import MOST_LETTERS, reduced, words
from tgraph.explain.picture_shapes import (
    HEIGHT,
    Figure,
    Frame,
    Shape,
    arrow,
    drawn,
    lines_of,
    side,
)

_STEP = HEIGHT + 16
_ABOVE = 8

Key = tuple[str, str]
"""A shape of the picture: entity, activity or agent, and its kind; an agent by its IRI."""


@dataclass(slots=True)
class _Lanes:
    """Which kinds there are, the arrows between them, and the row of each; an agent stands in the
    row of every activity that it is associated with, which is the last of its three."""

    shapes: dict[Key, Shape]
    arrows: dict[tuple[Key, Key], str]
    rows: dict[Key, int] = field(default_factory=dict)
    agents: list[tuple[int, Key, Key | None]] = field(default_factory=list)
    count: int = 0


def lanes(picture: Picture, frame: Frame) -> Figure:
    """The figure; it is as high as there are kinds."""
    found = _kinds(picture)
    _rows(found)
    paths = _paths(found, frame)
    bodies = [
        drawn(
            found.shapes[key],
            *_place(key[0], row, frame),
            _wide(key[0], frame),
            titled=frame.titled,
        )
        for key, row in [*found.rows.items(), *((key, row) for row, key, _ in found.agents)]
    ]
    height = _ABOVE + found.count * _STEP
    return Figure("All of it, by kind", lines_of(paths) + "".join(bodies), frame.width, height)


# --- what there is ------------------------------------------------------------------------------


def _kinds(picture: Picture) -> _Lanes:
    keys: list[Key] = [(n.shape, n.iri if n.shape == "agent" else n.kind) for n in picture.nodes]
    together: dict[Key, list[int]] = {}
    for place, key in enumerate(keys):
        together.setdefault(key, []).append(place)
    shapes = {key: _shape(picture, key, places) for key, places in together.items()}
    arrows = {
        (keys[source], keys[target]): name
        for source, target, name in picture.arrows
        if keys[source] != keys[target]
    }
    between = {pair for pair in arrows if pair[0][0] == pair[1][0] == "entity"}
    links: dict[Key, set[Key]] = {key: set() for key in shapes}
    for source, target in between:
        links[source].add(target)
    kept = {(s, t) for s, targets in reduced(links).items() for t in targets}
    return _Lanes(shapes, {p: n for p, n in arrows.items() if p not in between or p in kept})


def _shape(picture: Picture, key: Key, places: Sequence[int]) -> Shape:
    nodes = [picture.nodes[place] for place in places]
    labels = list(dict.fromkeys(node.label[:MOST_LETTERS] for node in nodes if node.label))
    title, count = words(nodes[0].kind), len(nodes)
    if labels and labels[0].lower() == title.lower():
        labels = labels[1:]
    first = tuple(labels[:1])
    more = (f"and {count - 1} more",) if len(labels) > 1 else ()
    text = "\n".join([*labels[:1], nodes[0].iri]) if count == 1 else ""
    name = f"{count} × {title}" if count > 1 else title
    return Shape(key[0], name, (*first, *more), text, count)


def _rows(found: _Lanes) -> None:
    """Give each kind a row: an activity that of the first thing that it generated, or its own."""
    for key in _ordered(found):
        if key[0] == "agent":
            continue
        generated = [
            found.rows[s]
            for (s, t), name in found.arrows.items()
            if t == key and name == GENERATED and s in found.rows
        ]
        taken = {row for other, row in found.rows.items() if other[0] == key[0]}
        free = [row for row in sorted(generated) if row not in taken]
        found.rows[key] = free[0] if free else found.count
        found.count = max(found.count, found.rows[key] + 1)
    for (source, target), name in found.arrows.items():
        if name == ASSOCIATED and source in found.rows:
            _beside(found, found.rows[source], target, source)
    met = {key for _, key, _ in found.agents}
    for key in found.shapes:
        if key[0] == "agent" and key not in met:
            _beside(found, found.count, key, None)


def _beside(found: _Lanes, row: int, agent: Key, activity: Key | None) -> None:
    """Put the agent into the row, or into a new one below all where another agent stands there."""
    if row in {taken for taken, _, _ in found.agents}:
        row = found.count
    found.agents.append((row, agent, activity))
    found.count = max(found.count, row + 1)


def _ordered(found: _Lanes) -> list[Key]:
    """The kinds so that arrows lead on, where there is no circle; what belongs to an answer's
    sentences before what was selected as a whole."""
    waiting = {key: {s for s, t in found.arrows if t == key} for key in found.shapes}
    done: list[Key] = []
    while waiting:
        ready = [key for key, before in waiting.items() if before.issubset(done)]
        key = min(ready or waiting, key=lambda k: (_after(k, done, found), k))
        done.append(key)
        del waiting[key]
    return done


def _after(key: Key, done: Sequence[Key], found: _Lanes) -> int:
    """How long ago what leads to the key was placed: chains stay together."""
    lanes = ("entity",) if key[0] == "entity" else ("entity", "activity")
    before = [
        n for n, other in enumerate(done) if other[0] in lanes and (other, key) in found.arrows
    ]
    return len(done) - max(before, default=len(done))


# --- drawing ------------------------------------------------------------------------------------

_LANE = {"entity": 0, "activity": 1, "agent": 2}


def _wide(kind: str, frame: Frame) -> int:
    return frame.lanes[_LANE[kind]]


def _place(kind: str, row: int, frame: Frame) -> tuple[float, float]:
    """The middle of what stands in a lane and row."""
    first, second, third = frame.lanes
    between = (frame.width - frame.margin - first - second - third - 4) / 2
    lefts = (frame.margin, frame.margin + first + between, frame.width - third - 4)
    lane = _LANE[kind]
    return lefts[lane] + frame.lanes[lane] / 2, _ABOVE + row * _STEP + HEIGHT / 2


def _paths(found: _Lanes, frame: Frame) -> list[str]:
    paths = [
        _across(found.rows[activity], row, frame)
        for row, _, activity in found.agents
        if activity is not None
    ]
    for name in (DERIVED, INFORMED, USED, GENERATED):
        links = sorted(
            (found.rows[s], found.rows[t], s, t)
            for (s, t), said in found.arrows.items()
            if s in found.rows and t in found.rows and _drawn_as(s, t, said) == name
        )
        tracks = _tracks([(a, b) for a, b, _, _ in links])
        many = max(tracks, default=0) + 1
        for (row, to_row, s, t), track in zip(links, tracks, strict=True):
            paths.append(
                _routed(name, (s[0], row), (t[0], to_row), (track + 1) / (many + 1), frame)
            )
    return paths


def _drawn_as(source: Key, target: Key, name: str) -> str:
    """Arrows between entities are drawn alike, and so are those between activities."""
    if source[0] == target[0]:
        return DERIVED if source[0] == "entity" else INFORMED
    return name


def _tracks(links: Iterable[tuple[int, int]]) -> list[int]:
    """A track for each link so that none that run side by side share one."""
    ends: list[list[tuple[int, int]]] = []
    found = []
    for link in links:
        low, high = sorted(link)
        free = (n for n, e in enumerate(ends) if all(high <= a or low >= b for a, b in e))
        track = next(free, len(ends))
        if track == len(ends):
            ends.append([])
        ends[track].append((low, high))
        found.append(track)
    return found


def _across(row: int, agent_row: int, frame: Frame) -> str:
    """From an activity to its agent."""
    x, y = _place("activity", row, frame)
    to_x, to_y = _place("agent", agent_row, frame)
    start, end = x + _wide("activity", frame) / 2, to_x - _wide("agent", frame) / 2
    middle = start + (end - start) * 0.3
    bend = "" if row == agent_row else f" H{middle:.0f} V{to_y + 8:.0f}"
    height = y if row == agent_row else to_y + 8
    return arrow(f"M{start:.0f} {y:.0f}{bend} L{end:.0f} {height:.0f}", ASSOCIATED, frame)


End = tuple[str, int]
"""A lane and a row."""


def _routed(name: str, source: End, target: End, track: float, frame: Frame) -> str:
    """An arrow down its lane, or around what stands between; ``track`` is where beside the lane,
    0 to 1."""
    (x, y), (to_x, to_y) = _place(*source, frame), _place(*target, frame)
    half, to_half = _wide(source[0], frame) / 2, _wide(target[0], frame) / 2
    if source[0] == target[0]:
        if target[1] == source[1] + 1:
            path = f"M{x:.0f} {y + HEIGHT / 2:.0f} V{to_y - HEIGHT / 2:.0f}"
        elif source[0] == "entity":
            beside = frame.margin * (1 - track)
            start, end = x - side("entity", 2 * half, 7), to_x - side("entity", 2 * to_half, 7)
            path = _around(start, y + 7, beside, end, to_y - 7)
        else:
            gutter = _place("agent", 0, frame)[0] - _wide("agent", frame) / 2 - (x + half)
            beside = x + half + gutter * (0.35 + 0.5 * track)
            path = _around(x + half, y + 9, beside, to_x + half, to_y - 9)
    elif name == GENERATED and source[1] == target[1]:
        path = f"M{x + half:.0f} {y:.0f} H{to_x - to_half:.0f}"
    else:
        half, to_half = side(source[0], 2 * half, 12), side(target[0], 2 * to_half, 4)
        start, end = (x - half, to_x + to_half) if x > to_x else (x + half, to_x - to_half)
        beside = start + (end - start) * (0.15 + 0.7 * track)
        path = _around(start, y + 12, beside, end, to_y - 4)
    return arrow(path, name, frame)


def _around(x: float, y: float, beside: float, to_x: float, to_y: float) -> str:
    return f"M{x:.0f} {y:.0f} H{beside:.0f} V{to_y:.0f} H{to_x:.0f}"
