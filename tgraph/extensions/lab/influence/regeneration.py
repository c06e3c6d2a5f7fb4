"""An answer written again from what was selected, or from less."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from tgraph.answer.base import Notes, Synthesiser
from tgraph.engine.ask.methods import Gathering, Method, MethodAround
from tgraph.engine.ask.parameters import restore_settings
from tgraph.engine.components import Components
from tgraph.engine.rerun.replay import SessionReplay, without_model
from tgraph.errors import UsageError
from tgraph.extensions.lab.influence.ablations import AblatedRun
from tgraph.model import NO_USAGE, Agent, Selection
from tgraph.models.base import CallSink, ChatModel, ChatReply, ChatRequest, no_sink
from tgraph.models.reply_cache import CachedChat, CacheFolder, chat_key
from tgraph.record.session import SessionRecord
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.reports import grounded_selection
from tgraph.settings import Settings

Writers = tuple[Synthesiser, Synthesiser | None]
"""Who writes from a selection, and who writes without any documents."""


@dataclass(frozen=True, slots=True)
class Written:
    """The inputs of a written answer.

    ``make`` returns writers with session settings and prompts, for a model or (None) for the
    embedded default."""

    question: Question
    selection: Selection
    make: Callable[[ChatModel | None], Writers]
    notes: tuple[str, ...] = ()


class SelectionReplay(SessionReplay):
    """A replay without model calls that remembers answer inputs."""

    _seen: tuple[Question, Selection] | None = None

    def recollect(self) -> Written:
        """Return answer inputs. Raise ``UsageError`` if the selection is not reproducible."""
        with TemporaryDirectory(prefix="tgraph-influence-") as folder:
            problem = self._ask(Path(folder), live=False)
        if self._seen is None:
            raise UsageError(
                f"What the answer was written from can't be had again. {problem}".strip(),
                "Ask the question again, and measure that session.",
            )
        return Written(*self._seen, self._writers, tuple(dict.fromkeys(self.notes)))

    def _retrieving(
        self, method: Method, settings: Settings, context: Context, lost: str
    ) -> Method | None:
        replay_method = super()._retrieving(method, settings, context, lost)
        return (
            None
            if replay_method is None
            else _Watched(replay_method, partial(self._remember_selection, context))
        )

    def _remember_selection(
        self, context: Context, question: Question, selection: Selection
    ) -> None:
        selected = grounded_selection(selection.selected, context)
        self._seen = question, replace(selection, selected=selected)

    def _writers(self, chat: ChatModel | None) -> Writers:
        session = self.session
        settings = restore_settings(self.settings, session.mode, session.parameters)
        settings = settings if chat else without_model(settings)
        with TemporaryDirectory(prefix="tgraph-influence-") as folder:
            settings = settings.model_copy(update={"prompts": self._prompts(Path(folder))})
            parts = Components(settings, Path(folder), chat=chat, embedder=self.parts.embedder)
            method = self._method_by_name(parts, Question(session.question))
            return method.synthesiser, parts.model_alone if chat is not None else None


@dataclass(frozen=True, slots=True)
class _Watched(MethodAround):
    """A method wrapper that reports gathered selections."""

    see: Callable[[Question, Selection], None]

    def gather(self, question: Question, context: Context, record: SessionRecord) -> Gathering:
        gathered = yield from self.inner.gather(question, context, record)
        self.see(*gathered)
        return gathered


class Regenerator:
    """An answer regenerator with a reply cache.

    Equal runs are cached separately by repetition, so that a repeated analysis costs nothing
    and an interrupted one continues."""

    def __init__(self, written: Written, chat: ChatModel | None, cache: Path) -> None:
        self._written = written
        self._chat = chat
        self._cache = CacheFolder(cache)
        self._writers: dict[int, Writers] = {}
        self._dry: tuple[_Dry, Writers] | None = None

    @property
    def agent(self) -> Agent:
        return self._writers_for_repeat(0)[0].agent

    @property
    def is_sure(self) -> bool:
        """Tell whether equal runs always produce identical answers."""
        return self._chat is None

    def prepare(self, runs: Sequence[AblatedRun]) -> None:
        """Create writers of runs before concurrent use."""
        for run in runs:
            self._writers_for_repeat(run.repeat)

    def write(self, run: AblatedRun, sink: CallSink) -> list[str]:
        """Return regenerated sentences. Raise ``ModelError`` if a reply is unusable."""
        return self._write_sentences(self._writers_for_repeat(run.repeat), run, sink)

    def request(self, run: AblatedRun) -> ChatRequest | None:
        """Return the chat request of a run, or None without model calls."""
        if self._chat is None:
            return None
        if self._dry is None:
            model = _Dry(self._chat.agent)
            self._dry = model, self._written.make(model)
        model, writers = self._dry
        model.asked = None
        self._write_sentences(writers, run, no_sink)
        return model.asked

    def is_known(self, run: AblatedRun, request: ChatRequest) -> bool:
        """Tell whether the reply cache contains this request."""
        assert self._chat is not None
        return chat_key(self._chat.agent, request) in _Repeat(self._cache, run.repeat)

    def _writers_for_repeat(self, repeat: int) -> Writers:
        if repeat not in self._writers:
            chat = self._chat
            cached = CachedChat(chat, _Repeat(self._cache, repeat)) if chat else None
            self._writers[repeat] = self._written.make(cached)
        return self._writers[repeat]

    def _write_sentences(self, writers: Writers, run: AblatedRun, sink: CallSink) -> list[str]:
        writer, alone = writers
        reduced_selection = self._written.selection.keep_selected(run.kept)
        writer = alone if run.alone and alone is not None else writer
        drafts = writer.synthesise(self._written.question, reduced_selection, Notes(), sink)
        return [draft.text for draft in drafts]


class _Repeat(MutableMapping[str, bytes]):
    """A reply cache for one repetition; the first repetition uses original keys."""

    def __init__(self, cache: MutableMapping[str, bytes], repeat: int) -> None:
        self._cache = cache
        self._repeat = repeat

    def _repeat_key(self, key: str) -> str:
        if not self._repeat:
            return key
        return sha256(f"{key}:{self._repeat}".encode()).hexdigest()

    def __getitem__(self, key: str) -> bytes:
        return self._cache[self._repeat_key(key)]

    def __setitem__(self, key: str, value: bytes) -> None:
        self._cache[self._repeat_key(key)] = value

    def __delitem__(self, key: str) -> None:
        del self._cache[self._repeat_key(key)]

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class _Dry:
    """A dummy ``ChatModel`` that returns empty replies and remembers its last request."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.asked: ChatRequest | None = None

    def complete(self, request: ChatRequest, sink: CallSink = no_sink) -> ChatReply:
        self.asked = request
        return ChatReply("", "stop", NO_USAGE, "")

    def stream(
        self, request: ChatRequest, sink: CallSink = no_sink
    ) -> Generator[str, None, ChatReply]:
        yield from ()
        return self.complete(request, sink)
