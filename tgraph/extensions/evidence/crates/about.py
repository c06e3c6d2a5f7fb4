"""The self-description of an evidence package."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from tgraph import vocabulary as v

FORMAT = 1

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class About:
    """A package description: ``texts`` tells whether pages and calls are included,
    ``no_replay`` explains why replay is impossible (empty if possible)."""

    session: str
    catalogue: str
    tgraph: str
    texts: bool
    no_replay: str = ""
    format: int = FORMAT

    def to_json(self) -> bytes:
        attributes = {name: getattr(self, name) for name in self.__slots__}
        return (
            json.dumps(attributes, ensure_ascii=False, sort_keys=True, indent=1) + "\n"
        ).encode()

    @classmethod
    def from_json(cls, data: bytes) -> About:
        """Return the description in JSON data. Raise ``ValueError`` or ``TypeError`` if invalid
        or of a later format."""
        description = cls(**json.loads(data))
        uuid = description.session.removeprefix(v.session_iri(""))
        if v.session_iri(uuid) != description.session or not _UUID.fullmatch(uuid):
            raise ValueError("it names no session")
        if description.format != FORMAT:
            raise ValueError("it was made by a newer tgraph")
        if not description.catalogue.startswith(v.collection_iri("")) or not v.is_iri(
            description.catalogue
        ):
            raise ValueError("it names no catalogue")
        if not isinstance(description.texts, bool) or not isinstance(description.no_replay, str):
            raise ValueError("it does not say what it holds")
        return description

    @property
    def uuid(self) -> str:
        return self.session.removeprefix(v.session_iri(""))

    @property
    def bundle(self) -> str:
        return v.bundle_iri(self.uuid)
