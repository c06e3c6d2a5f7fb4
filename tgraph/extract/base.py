"""The interface of extractors: a chunk in, entities and relationships out."""

from __future__ import annotations

from typing import Protocol

from tgraph.model import Agent, Chunk, Extraction, Prompt
from tgraph.models.base import CallSink, no_sink


class Extractor(Protocol):
    """Finds what a chunk says. ``key`` changes whenever the same chunk could yield something else."""

    @property
    def agent(self) -> Agent: ...

    @property
    def key(self) -> str: ...

    @property
    def prompts(self) -> tuple[Prompt, ...]: ...

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        """The extraction of one chunk of the document called ``title``.

        Every span lies inside the chunk and its quote is the page's text there. What can't be used
        (a quote that isn't in the chunk, a malformed row) is dropped and counted by reason.
        """
