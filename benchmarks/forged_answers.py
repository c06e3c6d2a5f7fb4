"""How many forged answers `tgraph verify` finds.

Questions about the example corpus are asked without a language model, and each answer's record is
read as a forger would have it: another number or name, a negation, an exact quote of another
sentence, or other words, another probability or another verdict for the answer as a whole. What is
written into the record itself is found by `tgraph audit integrity` besides.

    python -m benchmarks.forged_answers [--graph FOLDER]
"""

from __future__ import annotations

import argparse
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tgraph
from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.rerun.verification import VerificationRun
from tgraph.explain.assess.verification import Verification
from tgraph.explain.trace.sessions import find_session
from tgraph.explain.trace.values import Trace
from tgraph.record.assessments import VerificationRecord
from tgraph.store.base import Store

EXAMPLES = Path(__file__).parent.parent / "examples"
QUESTIONS = (
    "Who built the Fram?",
    "Who was the captain of the Endurance?",
    "When did the Endurance sink?",
    "What happened to the Aurora in May 1915?",
    "Who led the Southern Cross expedition?",
    "When did Amundsen reach the South Pole?",
    "Who financed the Southern Cross expedition?",
    "Which ship did Filchner sail on?",
    "Who commanded the Belgica?",
    "Where was Roald Amundsen born?",
)
"""Plain questions, whose answers are mostly told in short."""
NEAR_MISSES = 12
"""Questions of the example that its texts don't answer, for uncertain answers."""

_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}")
Forge = Callable[[Trace, Sequence[Trace]], "Trace | None"]
"""From a trace and those of other questions to the forged one; None where there is nothing to
forge."""


def _say(trace: Trace, text: str) -> Trace:
    """The trace with another first sentence, on the same citations."""
    first, *others = trace.sentences
    return replace(trace, sentences=(replace(first, text=text), *others))


def change_number(trace: Trace, others: Sequence[Trace]) -> Trace | None:
    text = trace.sentences[0].text
    changed = _NUMBER.sub(lambda m: str(int(m.group()) + 1), text, count=1)
    return _say(trace, changed) if changed != text else None


def change_person(trace: Trace, others: Sequence[Trace]) -> Trace | None:
    """Another name of the same selection takes the place of a name."""
    text = trace.sentences[0].text
    names = (n for item in trace.selected for e in item.evidence for n in _NAME.findall(e.quote))
    own, new = _NAME.search(text), next((name for name in names if name not in text), "")
    return _say(trace, text.replace(own.group(), new)) if own and new else None


def swap_names(trace: Trace, others: Sequence[Trace]) -> Trace | None:
    """Two names of the sentence change places, so that it has the same words."""
    text = trace.sentences[0].text
    names = list(dict.fromkeys(_NAME.findall(text)))
    if len(names) < 2:
        return None
    one, two = names[:2]
    swapped = re.sub(rf"\b(?:{one}|{two})\b", lambda m: two if m.group() == one else one, text)
    return _say(trace, swapped)


def negate(trace: Trace, others: Sequence[Trace]) -> Trace | None:
    text = trace.sentences[0].text
    changed = re.sub(r"\b(was|were|had|is|are)\b", r"\1 not", text, count=1)
    return _say(trace, changed) if changed != text else None


def quote_other_sentence(trace: Trace, others: Sequence[Trace]) -> Trace | None:
    """The sentence of the selection that is least likely to answer, exactly, and nothing else."""
    last, first = trace.sentences[-1], trace.sentences[0]
    return replace(trace, sentences=(last,), short="") if last is not first else None


def quote_other_question(trace: Trace, others: Sequence[Trace]) -> Trace | None:
    """The exact answer to another question."""
    return replace(trace, sentences=others[0].sentences[:1], short="")


def shorten_to_other_sentence(trace: Trace, others: Sequence[Trace]) -> Trace | None:
    """Words in bold out of another sentence that is cited."""
    if len(trace.sentences) < 2 or not trace.short:
        return None
    return replace(trace, short=" ".join(trace.sentences[-1].text.split()[:3]))


def shorten_to_other_words(trace: Trace, others: Sequence[Trace]) -> Trace | None:
    """Other words in bold out of the sentence that answers."""
    words = [w for w in trace.sentences[0].text.split() if w.strip(".,") not in trace.short]
    return replace(trace, short=" ".join(words[:2])) if trace.short and len(words) > 1 else None


def raise_verdict(trace: Trace, others: Sequence[Trace]) -> Trace | None:
    return replace(trace, verdict="answered") if trace.verdict == "uncertain" else None


def raise_confidence(trace: Trace, others: Sequence[Trace]) -> Trace | None:
    sure = trace.confidence
    return replace(trace, confidence=0.99) if sure is not None and sure < 0.7 else None


def raise_short_confidence(trace: Trace, others: Sequence[Trace]) -> Trace | None:
    sure = trace.short_confidence
    return replace(trace, short_confidence=0.99) if trace.short and sure and sure < 0.7 else None


def lower_verdict(trace: Trace, others: Sequence[Trace]) -> Trace | None:
    """An answer that is hidden as uncertain."""
    if trace.verdict != "answered" or (trace.confidence or 0.0) < 0.7:
        return None
    return replace(trace, verdict="uncertain", confidence=0.2, short="")


FORGERIES: Sequence[Forge] = (
    change_number,
    change_person,
    swap_names,
    negate,
    quote_other_sentence,
    quote_other_question,
    shorten_to_other_sentence,
    shorten_to_other_words,
    raise_verdict,
    raise_confidence,
    raise_short_confidence,
    lower_verdict,
)


@dataclass(frozen=True)
class ForgedRun(VerificationRun):
    """A verification that reads a forged record."""

    forged: Trace | None = None

    def _read_session(self, store: Store) -> Trace:
        assert self.forged is not None
        return self.forged


def verify_forged(kg: KnowledgeGraph, forged: Trace) -> Verification:
    """Verify a trace that was changed after it was read."""
    opened, store = kg.opened, kg.opened.read()
    session = find_session(store, opened.catalogue, forged.explain_id)
    record = opened.record(VerificationRecord)
    judge = opened.parts.support_judge
    return ForgedRun(opened, session, judge, record, lambda _: None, forged=forged).run(store)


def ask_questions(kg: KnowledgeGraph) -> list[Trace]:
    """Ask plain questions and near misses; return the traces of those with quotes."""
    asked = tomllib.loads((EXAMPLES / "questions.toml").read_text("utf-8"))["question"]
    near = [row["text"] for row in asked if row.get("kind") == "near"]
    texts = [*QUESTIONS, *near[:NEAR_MISSES]]
    traces = [kg.trace(kg.ask(text, mode="graph", history=()).session) for text in texts]
    return [trace for trace in traces if trace.sentences and not trace.step_answers]


def try_forgeries(kg: KnowledgeGraph, most: int) -> Iterator[tuple[str, Trace, bool]]:
    """Yield each honest answer and each forgery with whether it was found at fault."""
    traces = ask_questions(kg)
    for trace in traces[:most]:
        yield "honest", trace, not kg.verify(trace.explain_id).is_supported
    for forge in FORGERIES:
        forged = [(t, forge(t, traces[at + 1 :] + traces[:at])) for at, t in enumerate(traces)]
        for _, false in [pair for pair in forged if pair[1] is not None][:most]:
            assert false is not None
            yield forge.__name__, false, not verify_forged(kg, false).is_supported


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--graph", type=Path, help="a graph of examples/antarctica")
    parser.add_argument("--most", type=int, default=3, help="answers that each forgery is tried on")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = given.graph or Path(folder) / "graph"
        with tgraph.open(root, create=given.graph is None) as kg:
            if given.graph is None:
                kg.index([EXAMPLES / "antarctica"])
            counts: dict[str, list[bool]] = {}
            for name, trace, found in try_forgeries(kg, given.most):
                counts.setdefault(name, []).append(found)
                if found == (name == "honest"):
                    print(f"{name}: {trace.question} | {trace.short} | {trace.sentences[0].text}")
            for name, outcomes in counts.items():
                print(f"{name:26} {sum(outcomes)} of {len(outcomes)} found")


if __name__ == "__main__":
    main()
