"""What the phases of an index run share: the copy they change, the parts, the record, who listens.

A stage is a function of a ``Workshop``. It reads and changes ``copy``, asks the models that
``parts`` gives it, passes their calls to ``record.call``, and shows how far it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from tgraph.engine.progress import Progress, RunSetup
from tgraph.extract.base import Extractor
from tgraph.index.evidence import EvidenceReader
from tgraph.index.lookup_table import LazyTable, LookupTable
from tgraph.index.sources import Texts
from tgraph.librarian import Librarian
from tgraph.models.base import Embedder
from tgraph.record.run import RunRecord
from tgraph.store.writer import WorkingCopy


@dataclass(frozen=True)
class Workshop(RunSetup):
    """One run's place of work. ``run`` is the run's IRI, ``uuid`` what hangs on it is named by.

    ``table`` is the evidence of the copy as the first who asks for it finds it: for phases that
    come after all evidence is there.
    """

    run: str
    copy: WorkingCopy
    table: LazyTable[LookupTable]
    record: RunRecord
    extractor: Extractor
    embedder: Embedder

    @property
    def librarian(self) -> Librarian:
        return self.ledger.librarian

    @property
    def evidence(self) -> EvidenceReader:
        """The evidence of the ``table``."""
        return EvidenceReader(self.table(), Texts(self.copy.store, self.librarian))

    def show(self, stage: str, done: int, total: int, detail: str = "") -> None:
        """Tell who waits how far a stage is, and what the run has cost."""
        self.progress(Progress(stage, done, total, self.record.usage, detail))
