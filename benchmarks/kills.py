"""kill -9 at random moments: nothing acknowledged is lost, and nothing is seen half-made.

A tiny graph is worked on by real processes: index runs, questions, retractions, erasures, names
told apart and taken back, backups, restores, repairs; beside some of them others ask. One of them
is killed, just before a random change of the disk or after a random part of the time that its work
takes; some who ask, and some who clean up after the kill, are killed too. After each round:

- a reader sees the knowledge of before or of after, and the next question is answered;
- what was acknowledged is there: the change, and each stage of a session that somebody was told of;
- what was purged is in no file; a backup or a restored folder is whole, or not there;
- the record is intact (``audit integrity``, the chain computed once more), and nothing that dead
  processes began is left lying about.

Changes and moments are drawn by the seed; when a moment comes depends on the machine too.

Run: python -m benchmarks.kills [1000 kills] [seed 1] [at most 60 minutes]
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from tests.support.workers import (
    QUESTION,
    Tell,
    Work,
    Worker,
    ask,
    assert_chain,
    assert_tidy,
    collection,
    edges,
    fold,
    index,
    killed_at,
    mentioned,
    open_graph,
    retract,
    snapshot,
    split,
    start,
)
from tgraph.errors import StoreError
from tgraph.extensions import operations

REASON = "It must go."
FRESH = 20
"""Rounds with one folder; then it is made anew, so that it stays tiny."""
ALIASES = "Marie Curie = Curie\nCurie discovered polonium.\n"
KNOWN = {
    "cache", "current.json", "index.lock", "journals", "librarian", "snapshots", "staging", "store",
    "vectors", "write.lock",
}  # fmt: skip


# --- what processes do ----------------------------------------------------------------------------


def rejoin(tell: Tell, root: Path, name: str, other: str) -> None:
    with open_graph(root, create=False) as kg:
        tell(("rejoined", kg.entities.rejoin(name, other, reason=REASON)))


def purge(tell: Tell, root: Path, document: str) -> None:
    with open_graph(root, create=False) as kg:
        tell(("purged", kg.purge(document, reason=REASON).erasure))


def back_up(tell: Tell, root: Path, file: Path) -> None:
    with open_graph(root, create=False) as kg:
        tell(("saved", operations.back_up(kg, file).files))


def restore(tell: Tell, file: Path, root: Path) -> None:
    tell(("restored", operations.restore(file, root).files))


def repair(tell: Tell, root: Path) -> None:
    with open_graph(root, create=False) as kg:
        tell(("repaired", len(operations.repair(kg))))


ENDS = {
    *("indexed", "closed", "split", "rejoined", "retracted", "purged"),
    *("saved", "restored", "repaired"),
}
"""What the work tells when it is done."""


def victim(tell: Tell, number: int, work: Work, *arguments: object) -> None:
    """Does the work, and then waits for its end, as it comes to what is done as well."""
    tell(("begun",))
    killed_at(tell, number, work, *arguments)
    time.sleep(60)


# --- the graph ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """What the documents say that stand: the sentence of each, and whether two names are split."""

    sentences: dict[str, str]
    is_split: bool = False

    @property
    def edges(self) -> set[str]:
        who = "curie" if self.is_split else "marie-curie"
        said = {text.strip(".\n").lower() for text in self.sentences.values()}
        return said | {f"{who} discovered polonium"}


@dataclass(frozen=True)
class Change:
    """Something to do, and the state once it is done. ``purged`` is the hash of a document."""

    name: str
    work: Work
    arguments: tuple[object, ...]
    after: State
    purged: str = ""


@dataclass
class World:
    """The folder with the graph and its documents, and what must be true of them."""

    folder: Path
    rng: random.Random
    state: State = State({})
    told: set[str] = field(default_factory=set)
    erased: list[str] = field(default_factory=list)
    made: int = 0

    @property
    def root(self) -> Path:
        return self.folder / "graph"

    @classmethod
    def make(cls, folder: Path, rng: random.Random) -> World:
        world = cls(folder, rng)
        (folder / "curie.txt").write_text(ALIASES)
        for _ in range(3):
            world.state = world.index().after
        worker = start(index, world.root, sorted(folder.glob("*.txt")))
        assert worker.end() == 0
        return world

    def copy(self, folder: Path) -> World:
        """The same made anew, at the same place: documents are named by their paths."""
        shutil.rmtree(self.folder)
        shutil.copytree(folder, self.folder)
        return World(self.folder, self.rng, State(dict(self.state.sentences)), made=self.made)

    # --- changes ---

    def index(self) -> Change:
        """A new document, or a new version of one that stands."""
        self.made += 1
        name = f"{self.made}.txt"
        if len(self.state.sentences) > 4:
            name = self.rng.choice(sorted(self.state.sentences))
        text = f"Person{self.made} discovered element{self.made}.\n"
        (self.folder / name).write_text(text)
        after = State({**self.state.sentences, name: text}, self.state.is_split)
        return Change("index", index, (self.root, [self.folder / name]), after)

    def ask(self) -> Change:
        return Change("ask", ask, (self.root, 2), self.state)

    def tell_apart(self) -> Change:
        after = replace(self.state, is_split=not self.state.is_split)
        if self.state.is_split:
            return Change("rejoin", rejoin, (self.root, "Curie", "Marie Curie"), after)
        return Change("split", split, (self.root, "Curie"), after)

    def retract(self) -> Change:
        name, text, after = self._without_one()
        return Change("retract", retract, (self.root, _hash(text)), after) if name else self.index()

    def purge(self) -> Change:
        name, text, after = self._without_one()
        if not name:
            return self.index()
        return Change("purge", purge, (self.root, _hash(text)), after, _hash(text))

    def _without_one(self) -> tuple[str, str, State]:
        sentences = dict(self.state.sentences)
        if len(sentences) < 2:
            return "", "", self.state
        name = self.rng.choice(sorted(sentences))
        text = sentences.pop(name)
        return name, text, State(sentences, self.state.is_split)

    def back_up(self) -> Change:
        return Change("backup", back_up, (self.root, self.saved), self.state)

    def restore(self) -> Change:
        with open_graph(self.root, create=False) as kg:
            operations.back_up(kg, self.saved)
        return Change("restore", restore, (self.saved, self.restored), self.state)

    def repair(self) -> Change:
        """Of a folder in which something is damaged that can be made anew."""
        folder = collection(self.root)
        with snapshot(self.root) as found:
            own = found.path / "store" / "CURRENT"
        damaged = self.rng.choice([folder.pointer, own, folder.vectors / "edge.json"])
        damaged.unlink()  # a file of its own: others may be links to it
        damaged.write_bytes(b"?")
        return Change("repair", repair, (self.root,), self.state)

    @property
    def saved(self) -> Path:
        return self.folder / "saved.tar"

    @property
    def restored(self) -> Path:
        return self.folder / "restored"

    def draw(self) -> Change:
        often = [self.index] * 4 + [self.ask] * 3
        others = [
            self.tell_apart,
            self.retract,
            self.purge,
            self.back_up,
            self.restore,
            self.repair,
        ]
        changes: list[Callable[[], Change]] = [*often, *others]
        return self.rng.choice(changes)()

    # --- what must hold ---

    def check(self, change: Change, acknowledged: bool) -> str:
        """What became of the change. ``AssertionError`` where anything is not as it must be."""
        allowed = [change.after.edges] if acknowledged else [change.after.edges, self.state.edges]
        try:
            seen = edges(self.root)
            assert seen in allowed, f"{change.name}: a reader sees {seen}, not one of {allowed}"
        except StoreError:
            assert change.name == "repair", "a reader can't read"
        with open_graph(self.root, create=False) as kg:
            if change.purged and kg.purge(change.purged, reason=REASON):  # what is left of it
                self.erased.append(self._text_of(change))
                allowed = [change.after.edges]
            self.told.add(str(kg.ask(QUESTION, "graph").session))
        with open_graph(self.root, create=False) as kg:
            known = {session.explain_id for session in kg.sessions.summaries()}
            integrity = kg.integrity()
            assert integrity.ok, integrity.problems
        seen = edges(self.root)
        assert seen in allowed, f"{change.name}: afterwards there is {seen}, not one of {allowed}"
        is_done = seen == change.after.edges != self.state.edges
        self.state = change.after if is_done else self.state
        with snapshot(self.root) as found:
            lost = [iri for iri in self.told if not mentioned(found.store, iri)]
        assert not lost, f"told and lost: {lost}"
        assert {iri for iri in self.told if ":session:" in iri} <= known
        if not self.erased:  # else some hashes are of what was erased, which integrity follows
            assert_chain(self.root)
        self._check_files()
        if acknowledged:
            return "acknowledged"
        return "as after" if is_done else "as before"

    def _text_of(self, change: Change) -> str:
        (name,) = self.state.sentences.keys() - change.after.sentences.keys()
        (self.folder / name).unlink()
        return self.state.sentences[name].strip(".\n")

    def _check_files(self) -> None:
        assert_tidy(self.root)
        assert {path.name for path in collection(self.root).path.iterdir()} <= KNOWN
        for path in self.root.rglob("*") if self.erased else ():
            if path.is_file():
                data = path.read_bytes()
                data = gzip.decompress(data) if path.suffix == ".gz" else data
                assert not any(text.encode() in data for text in self.erased), path
        if self.saved.exists() and not self.restored.exists():
            operations.restore(self.saved, self.restored)
        if self.restored.exists():
            assert edges(self.restored) == self.state.edges, "what was restored is something else"
            shutil.rmtree(self.restored)
        self.saved.unlink(missing_ok=True)


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


# --- kills ----------------------------------------------------------------------------------------


@dataclass
class Moments:
    """When to kill: up to how many changes of the disk, or seconds, each kind of work takes."""

    rng: random.Random
    steps: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def kill(self, change: Change) -> Worker:
        """The process that was killed in the middle of the change, or just after it."""
        if self.rng.random() < 0.5:
            most = self.steps.setdefault(change.name, 60.0)
            tried: float = self.rng.randrange(int(most) + 1)
            worker = start(victim, tried, change.work, *change.arguments)
            worker.listen(lambda item: item == DONE)
            worker.kill()
            self.steps[change.name] = _learnt(most, tried, worker)
            return worker
        longest = self.seconds.setdefault(change.name, 0.2)
        tried = self.rng.random() * longest
        worker = start(victim, sys.maxsize, change.work, *change.arguments)
        worker.listen(lambda item: item == ("begun",))
        time.sleep(tried)
        worker.kill()
        self.seconds[change.name] = _learnt(longest, tried, worker)
        return worker


DONE = ("whole",)
"""What ``killed_at`` tells at the end of the work."""


def _learnt(most: float, tried: float, worker: Worker) -> float:
    """How long the work takes at most, after so much of it was tried; a fifth beyond its end."""
    if DONE in worker.told:
        return max((most + tried * 1.2) / 2, most / 10)
    return most * 1.2 if tried > most * 0.8 else most


def was_killed(worker: Worker) -> bool:
    return worker.process.exitcode == -9


def stages(worker: Worker) -> set[str]:
    return {item[2] for item in worker.told if item[0] == "event" and item[1] == "explain"}


@dataclass(frozen=True)
class Round:
    """A change, what became of it, and how many were killed that made it, asked, cleaned up."""

    change: str
    outcome: str
    askers: int
    cleaners: int

    @property
    def kills(self) -> int:
        return 1 + self.askers + self.cleaners


def one_round(world: World, moments: Moments) -> Round:
    rng = world.rng
    change = world.draw()
    alone = change.name in ("purge", "repair", "ask")  # an erasure waits for whoever reads
    askers = [start(ask, world.root, 3) for _ in range(0 if alone else rng.choice([0, 0, 1, 2]))]
    worker = moments.kill(change)
    for asker in askers:
        if rng.random() < 0.5:
            time.sleep(rng.random() * 0.1)
            asker.kill()
        else:
            assert asker.end() == 0
            assert ("closed",) in asker.told, asker.told[-1]
    cleaner = None
    if rng.random() < 0.3:
        cleaner = start(killed_at, rng.randrange(40), fold, world.root)
        cleaner.end()
    assert was_killed(worker), worker.told
    errors = [item for each in (worker, *askers) for item in each.told if item[0] == "error"]
    assert not errors, errors
    acknowledged = any(item[0] in ENDS for item in worker.told)
    for each in (worker, *askers):
        world.told |= stages(each)
    outcome = world.check(change, acknowledged)
    killed = [each for each in askers if was_killed(each)]
    return Round(change.name, outcome, len(killed), bool(cleaner and was_killed(cleaner)))


def rounds(place: Path, seed: int) -> Iterator[Round]:
    """Round after round, without an end, in the folder."""
    rng = random.Random(seed)
    moments = Moments(rng)
    (place / "world").mkdir()
    made = World.make(place / "world", rng)
    shutil.copytree(made.folder, place / "fresh")
    while True:
        world = made.copy(place / "fresh")
        for _ in range(FRESH):
            yield one_round(world, moments)


def main(count: int = 1000, seed: int = 1, minutes: float = 60) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    began, kills = time.monotonic(), 0
    place = Path(tempfile.mkdtemp(prefix="kills"))
    os.environ["TGRAPH_READER__MODEL"] = "none"  # it is the disk that matters
    try:
        for number, done in enumerate(rounds(place, seed), 1):
            kills += done.kills
            counts[done.change, done.outcome] += 1
            counts["those who asked", "killed"] += done.askers
            counts["those who cleaned up", "killed"] += done.cleaners
            passed = time.monotonic() - began
            if number % 25 == 0:
                print(f"{kills} kills in {number} rounds, {passed:.0f} s", file=sys.stderr)
            if kills >= count or passed > minutes * 60:
                break
    except BaseException:
        print(f"After {kills} kills; what there was is left in {place}", file=sys.stderr)
        raise
    shutil.rmtree(place)
    print(f"{kills} kills in {number} rounds, {passed:.0f} s, seed {seed}: all held")
    outcomes = ("as before", "as after", "acknowledged", "killed")
    print(f"{'':22}" + "".join(f"{each:>14}" for each in outcomes))
    for name in dict.fromkeys(name for name, _ in sorted(counts)):
        cells = "".join(f"{counts[name, each] or '':>14}" for each in outcomes)
        print(f"{name:22}{cells}")


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main(*map(int, sys.argv[1:4]))
