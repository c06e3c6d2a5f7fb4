"""What runs over documents takes time that grows with them, and not with their square.

Each regular expression of the modules that read documents runs over texts made to keep it busy:
repetitions of the characters that it asks for, with an end that it can't match. Time is measured
only as a growth: CPU seconds at two sizes, and only where they are long enough to be measured.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as regular  # type: ignore[attr-defined]
from typing import Any

import pytest

import tgraph.answer
import tgraph.extract
import tgraph.ingest
import tgraph.retrieve.text
from tests.support.paths import REPOSITORY
from tgraph.errors import IngestError
from tgraph.ingest.files import load
from tgraph.ingest.segments import segments, sentences_of

PACKAGES = (tgraph.ingest, tgraph.extract, tgraph.retrieve.text, tgraph.answer)
ABOUT_QUESTIONS = {
    "tgraph.answer.mode_choice",
    "tgraph.retrieve.text.comparison",
    "tgraph.retrieve.text.coordination",
    "tgraph.retrieve.text.decomposition",
    "tgraph.retrieve.text.question_analysis",
    "tgraph.retrieve.text.question_form",
}
"""What is in them reads the words of who asks, and not a document."""
BOUNDED = {
    "tgraph.extract.literals._BEFORE_MODIFIER": "the 12 characters before a literal",
    "tgraph.extract.literals._TEMPORAL": "the 12 characters before a literal",
    "tgraph.ingest.pdf._NO_TITLE": "a title of at most 300 characters",
    "tgraph.ingest.sentences._LAST_WORD": "the 40 characters before a full stop",
}
"""Expressions that run over a text of few characters only, whatever the document."""
SMALL, LARGE = 2_000, 8_000
EXPONENT = 1.6
MEASURABLE = 0.004
"""Seconds: a step of an expression takes nanoseconds, and the square of ``SMALL`` is millions."""
TAILS = ("\0" + "!" * 20, "\n\0" + "!" * 20)
Named = tuple[str, re.Pattern[str]]


def expressions() -> Iterator[Named]:
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name not in ABOUT_QUESTIONS:
                module = importlib.import_module(found.name)
                for name, value in vars(module).items():
                    yield from ((f"{found.name}.{name}", each) for each in _inside(value))


def _inside(value: Any) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, dict | tuple | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _inside(each)


def _is_anchored(name: str) -> bool:
    """Whether it is only ever asked whether a text begins with it."""
    module, _, variable = name.rpartition(".")
    source = REPOSITORY.joinpath(*module.split(".")).with_suffix(".py").read_text("utf-8")
    uses = set(re.findall(rf"\b{variable}\.(\w+)", source))
    in_tuple = re.search(rf"(?:\(|, ){variable}\b[,)]", source) is not None
    if in_tuple:
        uses |= set(re.findall(r"\bkind\.(\w+)\(", source))
    return bool(uses) and uses <= {"match", "fullmatch"}


def places(pattern: Any, repeated: bool = False) -> Iterator[tuple[str, bool]]:
    """A character for each place of a parsed expression, in order, and whether it may be repeated
    without end."""
    for kind, value in pattern:
        if kind is op.LITERAL:
            yield chr(value), repeated
        elif kind in (op.NOT_LITERAL, op.ANY):
            yield "x", repeated
        elif kind is op.IN:
            yield _member(value), repeated
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            yield from places(value[2], repeated or value[1] is op.MAXREPEAT)
        elif kind is op.SUBPATTERN:
            yield from places(value[3], repeated)
        elif kind in (op.ASSERT, op.ASSERT_NOT):
            yield from places(value[1], repeated)
        elif kind is op.ATOMIC_GROUP:
            yield from places(value, repeated)
        elif kind is op.BRANCH:
            for branch in value[1][:4]:
                yield from places(branch, repeated)


def _member(members: Any) -> str:
    kind, value = members[0]
    if kind is op.NEGATE:
        return "x"
    if kind is op.CATEGORY:
        return {op.CATEGORY_SPACE: " ", op.CATEGORY_DIGIT: "1", op.CATEGORY_WORD: "a"}.get(
            value, "-"
        )
    return chr(value if kind is op.LITERAL else value[0])


def attacks(expression: re.Pattern[str]) -> list[tuple[str, str, str]]:
    """What stands before, is repeated, and stands after, to keep an expression busy."""
    found = list(places(regular.parse(expression.pattern, expression.flags)))
    letters = [character for character, _ in found]
    units = [*letters[:10], *map("".join, pairwise(letters[:7])), "".join(letters[:12])]
    heads = ["".join(letters[:at]) for at, (_, repeated) in enumerate(found) if repeated][:12]
    after = {len(head): found[len(head)][0] for head in heads}
    plain = [("", unit, tail) for unit in [*units, " ", "\n", "a "] for tail in TAILS]
    led = [(h, unit, TAILS[0]) for h in heads for unit in (after[len(h)], " ", "\n")]
    return list(dict.fromkeys(plain + led))


def seconds(work: Callable[[], object]) -> float:
    return min(_once(work) for _ in range(2))


def _once(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


@contextmanager
def never_endless() -> Iterator[None]:
    """An expression whose time doubles with each character is to fail and not to hang."""

    def give_up(*_: object) -> None:
        pytest.fail("it doesn't come to an end")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, 60)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def exponent(work: Callable[[int], object]) -> float:
    """How the time grows between the two sizes; 0 where there is nothing to be measured."""
    if _once(lambda: work(SMALL)) < MEASURABLE:
        return 0.0
    small = seconds(lambda: work(SMALL))
    if small < MEASURABLE:
        return 0.0
    return math.log(seconds(lambda: work(LARGE)) / small, LARGE / SMALL)


def run(
    expression: re.Pattern[str], anchored: bool, attack: tuple[str, str, str], size: int
) -> None:
    head, unit, tail = attack
    text = head + unit * (size // len(unit)) + tail
    if anchored:
        expression.match(text)
        expression.fullmatch(text)
    else:
        for _ in expression.finditer(text):
            pass


@pytest.mark.slow
def test_expressions_over_documents_take_linear_time():
    found = {name: each for name, each in expressions() if name not in BOUNDED}
    assert len(found) > 100
    slow = []
    with never_endless():
        for name, expression in found.items():
            attempt = partial(run, expression, _is_anchored(name))
            for attack in attacks(expression):
                if exponent(partial(attempt, attack)) > EXPONENT:
                    slow.append((name, attack))
                    break
    assert not slow, "\n".join(map(repr, slow))


@pytest.mark.parametrize("name", sorted(BOUNDED))
def test_what_is_excused_is_there(name):
    module, _, variable = name.rpartition(".")
    assert isinstance(getattr(importlib.import_module(module), variable), re.Pattern)


@pytest.mark.parametrize("suffix", ["md", "txt"])
@pytest.mark.parametrize(
    "unit", ["`", "[", "*a ", "```\n", "> ", "| ", "a: b; ", ". ", "<a ", "- ", "    a", "---\n"]
)
def test_text_is_read_in_this_process_in_linear_time(unit, suffix):
    def read(size: int) -> None:
        data = ("Text.\n\n" + unit * (size // len(unit)) + "!\n").encode()
        with suppress(IngestError):
            document = load(data, f"a.{suffix}")
            for segment in segments(
                document.pages[0].text, document.media_type, document.pages[0].blocks
            ):
                sentences_of(segment)

    read(100)
    with never_endless():
        assert exponent(read) < EXPONENT
