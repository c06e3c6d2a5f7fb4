"""What is drawn over a PDF's pages: form fields, notes in the page, comments."""

from __future__ import annotations

from collections import Counter
from ctypes import c_ushort
from typing import Any

import pypdfium2.raw as raw

_MOST_ANNOTATIONS = 5_000
_NOT_COMMENTS = frozenset(
    (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_POPUP, raw.FPDF_ANNOT_FREETEXT)
)
_HIDDEN = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW


def open_page(document: Any, index: int) -> Any:
    """Return a page whose form fields and visible notes are part of the page's text, as readers
    of the page see the text."""
    page = document[index]
    if raw.FPDFPage_GetAnnotCount(page) <= 0:
        return page
    raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY)
    page.close()
    return document[index]


def count_unshown(page: Any) -> Counter[str]:
    """Count what of a page's annotations isn't drawn: comments, and values of form fields of which
    the file has no drawing."""
    counts: Counter[str] = Counter()
    for index in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST_ANNOTATIONS)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        if not raw.FPDFAnnot_GetFlags(annotation) & _HIDDEN:
            kind = raw.FPDFAnnot_GetSubtype(annotation)
            is_drawn = raw.FPDFAnnot_GetAP(annotation, 0, None, 0) > 2
            if kind == raw.FPDF_ANNOT_WIDGET and not is_drawn:
                counts["form field"] += _has_text(annotation, b"V")
            elif kind not in _NOT_COMMENTS:
                counts["comment"] += _has_text(annotation, b"Contents")
        raw.FPDFPage_CloseAnnot(annotation)
    return counts


def _has_text(annotation: Any, key: bytes) -> bool:
    size = raw.FPDFAnnot_GetStringValue(annotation, key, None, 0)
    buffer = (c_ushort * (min(size, 2_000) // 2 + 1))()
    raw.FPDFAnnot_GetStringValue(annotation, key, buffer, len(buffer) * 2)
    return bool("".join(map(chr, buffer)).strip("\0 \r\n\t"))
