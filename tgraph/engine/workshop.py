"""What the phases of an index run share: the copy they change, the parts, the record, who listens.

A stage is a function of a ``Workshop``. It reads and changes ``copy``, asks the models that
``parts`` gives it, passes their calls to ``record.call``, and shows how far it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from tgraph.engine.parts import Parts
from tgraph.engine.progress import OnMessage, OnProgress, Progress
from tgraph.extract.base import Extractor
from tgraph.index.evidence import EvidenceReader
from tgraph.index.lookup_table import LazyTable, LookupTable
from tgraph.index.sources import Texts
from tgraph.librarian import Librarian
from tgraph.models.base import Embedder
from tgraph.record.run import RunRecord
from tgraph.settings import Settings
from tgraph.store.writer import WorkingCopy


@dataclass(frozen=True, slots=True)
class Workshop:
    """One run's place of work. ``run`` is the run's IRI, ``uuid`` what hangs on it is named by.

    ``table`` is the evidence of the copy as the first who asks for it finds it: for phases that
    come after all evidence is there.
    """

    run: str
    uuid: str
    copy: WorkingCopy
    table: LazyTable[LookupTable]
    record: RunRecord
    librarian: Librarian
    settings: Settings
    parts: Parts
    extractor: Extractor
    embedder: Embedder
    clock: Callable[[], datetime]
    progress: OnProgress
    message: OnMessage

    @property
    def evidence(self) -> EvidenceReader:
        """The evidence of the ``table``."""
        return EvidenceReader(self.table(), Texts(self.copy.store, self.librarian))

    def show(self, stage: str, done: int, total: int, detail: str = "") -> None:
        """Tell who waits how far a stage is, and what the run has cost."""
        self.progress(Progress(stage, done, total, self.record.usage, detail))
