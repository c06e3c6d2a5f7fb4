"""What an evidence package says of itself."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from tgraph import vocabulary as v

FORMAT = 1

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class About:
    """What a package says of itself. ``texts`` is whether it has the pages and calls, ``no_replay``
    why it can't be replayed; empty where it can."""

    session: str
    catalogue: str
    tgraph: str
    texts: bool
    no_replay: str = ""
    format: int = FORMAT

    def to_json(self) -> bytes:
        said = {name: getattr(self, name) for name in self.__slots__}
        return (json.dumps(said, ensure_ascii=False, sort_keys=True, indent=1) + "\n").encode()

    @classmethod
    def from_json(cls, data: bytes) -> About:
        """``ValueError`` or ``TypeError`` where it is odd or of a later format."""
        about = cls(**json.loads(data))
        uuid = about.session.removeprefix(v.session_iri(""))
        if v.session_iri(uuid) != about.session or not _UUID.fullmatch(uuid):
            raise ValueError("it names no session")
        if about.format != FORMAT:
            raise ValueError("it was made by a newer tgraph")
        if not about.catalogue.startswith(v.collection_iri("")) or not v.is_iri(about.catalogue):
            raise ValueError("it names no catalogue")
        if not isinstance(about.texts, bool) or not isinstance(about.no_replay, str):
            raise ValueError("it does not say what it holds")
        return about

    @property
    def uuid(self) -> str:
        return self.session.removeprefix(v.session_iri(""))

    @property
    def bundle(self) -> str:
        return v.bundle_iri(self.uuid)
