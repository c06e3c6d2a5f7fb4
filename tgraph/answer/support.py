"""Whether texts prove a statement: judged by a model, or by the words that they share."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol
from typing import Literal as Choice

from pydantic import BaseModel, BeforeValidator

from tgraph.answer.base import Step
from tgraph.answer.model import ModelStep
from tgraph.errors import ModelError
from tgraph.ingest.sentences import sentences
from tgraph.model import Agent, Prompt
from tgraph.models.base import CallSink
from tgraph.retrieve.text.lexical import STOP_WORDS, stem, terms, words
from tgraph.version import __version__

Verdict = Choice["supported", "quoted", "partly", "unsupported", "undecided"]

PROVEN: tuple[Verdict, ...] = ("supported", "quoted")
"""The verdicts on a statement that the texts prove."""

ENOUGH = 0.8
"""The share of a statement's words that texts must have to support it by words alone."""

SOME = 0.5
"""The share above which they support a part of it."""

_LONGEST_REASON = 1_000


@dataclass(frozen=True, slots=True)
class Support:
    """A judgement with its reason. ``quoted``: a text has the statement word for word, and whether
    that answers anything was not judged; ``undecided``: no judgement could be had."""

    verdict: Verdict
    reason: str

    @property
    def full(self) -> bool:
        return self.verdict in PROVEN


class SupportJudge(Step, Protocol):
    """Says whether texts, taken together, prove a statement."""

    @property
    def prompts(self) -> tuple[Prompt, ...]: ...

    def judge(self, question: str, statement: str, texts: Sequence[str], sink: CallSink) -> Support:
        """The judgement; no texts prove nothing."""


# --- by words -------------------------------------------------------------------------------------

_NEGATION = frozenset({"not", "no", "never", "neither", "nor", "without", "cannot", "nobody"})
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][\w'’]*")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


class LexicalJudge:
    """A ``SupportJudge`` without a model. A statement that a text has word for word is quoted;
    any other needs ``ENOUGH`` of its words, and all of its numbers, names and negations, in the
    texts."""

    agent = Agent("method", "lexical-support", __version__)
    prompts: tuple[Prompt, ...] = ()

    def judge(self, question: str, statement: str, texts: Sequence[str], sink: CallSink) -> Support:
        if not texts:
            return Support("unsupported", "nothing is cited")
        flat = _flat(statement)
        if any(flat in _flat(text) for text in texts):
            return Support("quoted", "a cited text has it word for word")
        whole = "\n".join(texts)
        wanted, had = list(dict.fromkeys(terms(statement))), set(terms(whole))
        share = sum(term in had for term in wanted) / len(wanted) if wanted else 0.0
        if missing := self._missing(statement, whole):
            verdict: Verdict = "partly" if share > SOME else "unsupported"
            return Support(verdict, f"no cited text has {', '.join(missing)}")
        if _denies(statement, wanted, texts):
            return Support("unsupported", "one of the two is negated and the other is not")
        said = f"the cited texts have {share:.0%} of its words"
        if share >= ENOUGH:
            return Support("supported", said)
        return Support("partly" if share > SOME else "unsupported", said)

    def _missing(self, statement: str, whole: str) -> list[str]:
        """The numbers and names that the texts lack."""
        numbers = set(_NUMBER.findall(whole))
        had = {stem(word) for word in words(whole)}
        missing = [n for n in _NUMBER.findall(statement) if n not in numbers]
        names = [name for name in _NAME.findall(statement) if name.lower() not in STOP_WORDS]
        missing += [name for name in names if not had.issuperset(map(stem, words(name)))]
        return list(dict.fromkeys(missing))


def _denies(statement: str, wanted: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether the sentence nearest to the statement is negated and it is not, or the reverse."""
    parts = [text[start:end] for text in texts for start, end in sentences(text)]
    nearest = max(parts, key=lambda part: len(set(wanted) & set(terms(part))), default="")
    return _negated(statement) != _negated(nearest)


def _negated(text: str) -> bool:
    return any(word in _NEGATION or word.endswith(("n't", "n’t")) for word in words(text))


def _flat(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


# --- by a model -----------------------------------------------------------------------------------

_SAID: dict[str, Verdict] = {"full": "supported", "partial": "partly", "none": "unsupported"}


def _as_support(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


class SupportReply(BaseModel):
    """Whether the texts prove the statement."""

    reason: str = ""
    support: Annotated[Choice["full", "partial", "none"], BeforeValidator(_as_support)]


class ModelJudge(ModelStep):
    """A ``SupportJudge`` that asks a language model by the prompt ``judge_support``."""

    name = "judge_support"

    def judge(self, question: str, statement: str, texts: Sequence[str], sink: CallSink) -> Support:
        """A reply that can't be read leaves it undecided; ``EndpointError`` is raised."""
        if not texts:
            return Support("unsupported", "nothing is cited")
        rows = (json.dumps({"text": text}, ensure_ascii=False) for text in texts)
        values = {"question": question, "statement": statement, "texts": "\n".join(rows)}
        reply = self.try_ask(values, SupportReply, sink)
        if isinstance(reply, ModelError):
            return Support("undecided", reply.message)
        return Support(_SAID[reply.support], " ".join(reply.reason.split())[:_LONGEST_REASON])
