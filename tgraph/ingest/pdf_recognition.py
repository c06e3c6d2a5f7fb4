"""Text recognition (OCR) of PDF pages that are images, by RapidOCR's models, which come with it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from tgraph.errors import IngestError, ModelError
from tgraph.ingest.base import FileLimits
from tgraph.ingest.pdf_fragments import Fragment
from tgraph.models.data_packages import import_checked

PACKAGE = "rapidocr-onnxruntime"
_FILES_SHA256 = "bb012c7f530b6a91310a7ff022896acd0edabea2d6bcdec71654ab65092f2684"
_DOTS = 150 / 72
"""Pixels of a point: 150 dots an inch, at which print of 8 points is read."""
_MOST_PIXELS = 4_000_000
_LONG_WORD = 9
"""Characters above which a word may be several between which the model put no space."""
_MEMORY = 1_700 << 20
"""Bytes of address space that the models and a page's image take."""


class TextRecogniser:
    """Recognises the text of pages. Raises ``IngestError`` where it isn't installed, or where the
    limits leave too little memory."""

    def __init__(self, name: str, limits: FileLimits) -> None:
        if limits.memory < _MEMORY:
            raise IngestError(
                name,
                f"It has pages without text, and recognising them takes {_MEMORY >> 20:,} MB of"
                f" memory; parsing may use {limits.memory >> 20:,} MB.",
                f"Set ingest.memory_mb to {_MEMORY >> 20} or more, or ingest.ocr to false.",
            )
        try:
            package = import_checked("rapidocr_onnxruntime", _FILES_SHA256, f"{PACKAGE}==1.4.4")
        except ImportError:
            raise IngestError(
                name,
                "It has pages without text, and text recognition isn't installed.",
                "Run pip install 'tgraph-rag[ocr]', or set ingest.ocr to false.",
            ) from None
        except ModelError as error:
            raise IngestError(name, error.message, error.remedy) from None
        self._engine = package.RapidOCR(intra_op_num_threads=1, inter_op_num_threads=1)

    def recognise(self, page: Any) -> list[Fragment]:
        """Return the lines of text on the image of a page, each with its confidence."""
        width, height = page.get_size()
        scale = min(_DOTS, (_MOST_PIXELS / max(width * height, 1.0)) ** 0.5)
        pixels = page.render(scale=scale).to_numpy()[:, :, :3]
        result, _ = self._engine(pixels, return_word_box=True)
        return _even_sizes([_make_fragment(line, pixels, scale) for line in result or ()])


def _make_fragment(line: Any, pixels: Any, scale: float) -> Fragment:
    """Return the fragment of a line as RapidOCR gives it: corners, text, confidence, and the
    corners and texts of characters."""
    corners, text, confidence, *characters = line
    left, right = (f(corner[0] for corner in corners) for f in (min, max))
    top, bottom = (f(corner[1] for corner in corners) for f in (min, max))
    longest = max(map(len, text.split()), default=0)
    if len(characters) > 1 and longest > _LONG_WORD and not any(map(_is_ideograph, text)):
        starts = [box[0][0] for box in characters[0]]
        strip = pixels[int(top) : int(bottom) + 1, int(left) : int(right) + 1]
        text = _add_spaces(characters[1], starts, [left + gap for gap in _ink_gaps(strip)])
    height = (bottom - top) / scale
    return Fragment(
        left / scale,
        top / scale,
        right / scale,
        bottom / scale,
        bottom / scale - 0.25 * height,
        max(0.75 * height, 1.0),
        " ".join(text.split()),
        confidence=float(confidence),
    )


def _is_ideograph(character: str) -> bool:
    return "\u2e80" <= character <= "\u9fff" or "\uac00" <= character <= "\ud7a3"


def _ink_gaps(strip: Any) -> list[int]:
    """Return where blanks end that are wider than those between letters in the image of a line."""
    grey = strip.mean(axis=2)
    dark = (grey < (float(grey.min()) + float(grey.max())) / 2).any(axis=0).tolist()
    blanks, width = [], 0
    for at, is_dark in enumerate(dark):
        if is_dark and 0 < width < at:
            blanks.append((width, at))
        width = 0 if is_dark else width + 1
    usual = median(width for width, _ in blanks) if blanks else 0
    least = max(0.14 * len(grey), 2 * usual)
    return [at for width, at in blanks if width >= least]


def _add_spaces(characters: Sequence[str], starts: Sequence[float], gaps: Sequence[float]) -> str:
    """Return the text of characters with the spaces that the model, which is trained on Chinese
    too, left out: one before the character that is nearest to a gap."""
    places = range(1, min(len(characters), len(starts)))
    spaced = {min(places, key=lambda k: abs(starts[k] - gap)) for gap in gaps if places}
    return "".join(
        f" {character}" if place in spaced else character
        for place, character in enumerate(characters)
    )


def _even_sizes(fragments: list[Fragment]) -> list[Fragment]:
    """Return fragments with one size where sizes differ by no more than boxes are exact."""
    if fragments:
        usual = median(fragment.size for fragment in fragments)
        for fragment in fragments:
            if 0.7 < fragment.size / usual < 1.35:
                fragment.size = usual
    return fragments
