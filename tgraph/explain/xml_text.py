"""Text from documents and models, made fit for XML 1.0."""

from __future__ import annotations

import re
from typing import BinaryIO

from pyoxigraph import Literal, Quad

# What XML 1.0 has no way to write, not even as a reference (section 2.2).
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_UNFIT_BYTES = re.compile(b"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
_REPLACEMENT = "\ufffd"


def for_xml(quad: Quad) -> Quad:
    """The quad with U+FFFD for each character of its literal that XML can't hold."""
    value = quad.object
    if not isinstance(value, Literal) or not _UNFIT.search(value.value):
        return quad
    text = _UNFIT.sub(_REPLACEMENT, value.value)
    kind = None if value.language else value.datatype
    changed = Literal(text, datatype=kind, language=value.language)
    return Quad(quad.subject, quad.predicate, changed, quad.graph_name)


class XmlOutput:
    """A binary stream that lets through only what XML can hold."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, data: bytes) -> int:
        self._out.write(_UNFIT_BYTES.sub(_REPLACEMENT.encode(), bytes(data)))
        return len(data)

    def flush(self) -> None:
        self._out.flush()
