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
from tgraph.engine.ask.parameters import restored
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
    """What an answer was written from. ``make`` gives its writers, with the settings and prompts
    of the session, for a model or (None) for the embedded default."""

    question: Question
    selection: Selection
    make: Callable[[ChatModel | None], Writers]
    notes: tuple[str, ...] = ()


class SelectionReplay(SessionReplay):
    """A replay, without any call, that remembers what the answer was written from."""

    _seen: tuple[Question, Selection] | None = None

    def recollect(self) -> Written:
        """``UsageError`` where the selection can't be had as it was."""
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
        found = super()._retrieving(method, settings, context, lost)
        return None if found is None else _Watched(found, partial(self._see, context))

    def _see(self, context: Context, question: Question, selection: Selection) -> None:
        selected = grounded_selection(selection.selected, context)
        self._seen = question, replace(selection, selected=selected)

    def _writers(self, chat: ChatModel | None) -> Writers:
        session = self.session
        settings = restored(self.settings, session.mode, session.parameters)
        settings = settings if chat else without_model(settings)
        with TemporaryDirectory(prefix="tgraph-influence-") as folder:
            settings = settings.model_copy(update={"prompts": self._prompts(Path(folder))})
            parts = Components(settings, Path(folder), chat=chat, embedder=self.parts.embedder)
            method = self._method_by_name(parts, Question(session.question))
            return method.synthesiser, parts.alone if chat is not None else None


@dataclass(frozen=True, slots=True)
class _Watched(MethodAround):
    """A method that tells what it gathered."""

    see: Callable[[Question, Selection], None]

    def gather(self, question: Question, context: Context, record: SessionRecord) -> Gathering:
        found = yield from self.inner.gather(question, context, record)
        self.see(*found)
        return found


class Regenerator:
    """Writes the answer again. Replies are remembered, equal runs each for itself, so that the same
    analysis costs nothing a second time and an interrupted one goes on where it stopped."""

    def __init__(self, written: Written, chat: ChatModel | None, cache: Path) -> None:
        self._written = written
        self._chat = chat
        self._cache = CacheFolder(cache)
        self._writers: dict[int, Writers] = {}
        self._dry: tuple[_Dry, Writers] | None = None

    @property
    def agent(self) -> Agent:
        return self._of(0)[0].agent

    @property
    def is_sure(self) -> bool:
        """Whether equal runs always come to the same answer."""
        return self._chat is None

    def prepare(self, runs: Sequence[AblatedRun]) -> None:
        """Make the writers of the runs, before several threads want them."""
        for run in runs:
            self._of(run.repeat)

    def write(self, run: AblatedRun, sink: CallSink) -> list[str]:
        """The sentences. ``ModelError`` where the reply can't be used."""
        return self._write(self._of(run.repeat), run, sink)

    def request(self, run: AblatedRun) -> ChatRequest | None:
        """What the run would ask the model; None where it asks nothing."""
        if self._chat is None:
            return None
        if self._dry is None:
            model = _Dry(self._chat.agent)
            self._dry = model, self._written.make(model)
        model, writers = self._dry
        model.asked = None
        self._write(writers, run, no_sink)
        return model.asked

    def is_known(self, run: AblatedRun, request: ChatRequest) -> bool:
        """Whether the reply was had before."""
        assert self._chat is not None
        return chat_key(self._chat.agent, request) in _Repeat(self._cache, run.repeat)

    def _of(self, repeat: int) -> Writers:
        if repeat not in self._writers:
            chat = self._chat
            cached = CachedChat(chat, _Repeat(self._cache, repeat)) if chat else None
            self._writers[repeat] = self._written.make(cached)
        return self._writers[repeat]

    def _write(self, writers: Writers, run: AblatedRun, sink: CallSink) -> list[str]:
        writer, alone = writers
        whole = self._written.selection
        left = replace(whole, selected=tuple(whole.selected[n] for n in sorted(run.kept)))
        writer = alone if run.alone and alone is not None else writer
        drafts = writer.synthesise(self._written.question, left, Notes(), sink)
        return [draft.text for draft in drafts]


class _Repeat(MutableMapping[str, bytes]):
    """The replies of one repetition: those of the first are under their own keys."""

    def __init__(self, cache: MutableMapping[str, bytes], repeat: int) -> None:
        self._cache = cache
        self._repeat = repeat

    def _key(self, key: str) -> str:
        if not self._repeat:
            return key
        return sha256(f"{key}:{self._repeat}".encode()).hexdigest()

    def __getitem__(self, key: str) -> bytes:
        return self._cache[self._key(key)]

    def __setitem__(self, key: str, value: bytes) -> None:
        self._cache[self._key(key)] = value

    def __delitem__(self, key: str) -> None:
        del self._cache[self._key(key)]

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class _Dry:
    """A ``ChatModel`` that says nothing and remembers what it was asked."""

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
