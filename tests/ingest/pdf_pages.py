"""Makes PDFs of texts, rules and images at given places (PDF 1.7, 7.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Text:
    """A line of Helvetica, its baseline beginning at a place from the lower left corner; ``text``
    is the inside of a PDF's string. The characters of ``MEANT`` mean others where ``is_meant``."""

    x: float
    y: float
    text: str
    size: float = 11
    bold: bool = False
    mode: int = 0
    turned: bool = False
    is_meant: bool = False

    def draw(self) -> str:
        matrix = "0 1 -1 0" if self.turned else "1 0 0 1"
        font = "M" if self.is_meant else "B" if self.bold else "F"
        place = f"{matrix} {self.x} {self.y} Tm"
        return f"BT /{font} {self.size} Tf {self.mode} Tr {place} ({self.text}) Tj ET"


@dataclass(frozen=True)
class Rule:
    """A line from one place to another."""

    x0: float
    y0: float
    x1: float
    y1: float

    def draw(self) -> str:
        return f"{self.x0} {self.y0} m {self.x1} {self.y1} l S"


@dataclass(frozen=True)
class Square:
    """A square to tick at a place."""

    x: float
    y: float
    side: float = 12

    def draw(self) -> str:
        return f"{self.x} {self.y} {self.side} {self.side} re S"


@dataclass(frozen=True)
class Field:
    """A form field with its value at a place, drawn or not, or a comment."""

    x: float
    y: float
    value: str
    is_drawn: bool = True
    is_comment: bool = False

    def write(self, drawing: int) -> str:
        kind = "/Text/Contents" if self.is_comment else "/Widget/FT/Tx/T(name)/V"
        place = f"/F 4/Rect[{self.x} {self.y} {self.x + 140} {self.y + 20}]"
        drawn = f"/AP<</N {drawing} 0 R>>" if self.is_drawn else ""
        return f"<</Type/Annot/Subtype{kind}({self.value}){place}{drawn}>>"


@dataclass(frozen=True)
class Wave:
    """A line of seven turns beginning at a place, as a chart has."""

    x: float
    y: float

    def draw(self) -> str:
        turns = (f"{self.x + 30 * k} {self.y + 20 * (k % 2)} l" for k in range(1, 8))
        return f"{self.x} {self.y} m {' '.join(turns)} S"


@dataclass(frozen=True)
class Image:
    """An image at a place, of given pixels (RGB) or of one grey one."""

    x: float
    y: float
    width: float
    height: float
    pixels: bytes = b"\x80\x80\x80"
    across: int = 1
    down: int = 1


@dataclass
class PdfPage:
    """A page of A4."""

    texts: Sequence[Text] = ()
    rules: Sequence[Rule | Wave | Square] = ()
    images: Sequence[Image] = field(default=())
    fields: Sequence[Field] = ()


def make_pdf(*pages: PdfPage) -> bytes:
    """Return a PDF of pages."""
    meant = _font("Helvetica").replace(b">>", b"/ToUnicode 6 0 R>>")
    objects = [b"", b"", _font("Helvetica"), _font("Helvetica-Bold"), meant, _stream(_MEANINGS)]
    kids = []
    for page in pages:
        drawn = [*(rule.draw() for rule in page.rules), *(text.draw() for text in page.texts)]
        names = []
        for image in page.images:
            name = f"I{len(objects) + 1}"
            objects.append(_image(image))
            names.append(f"/{name} {len(objects)} 0 R")
            drawn.insert(
                0, f"q {image.width} 0 0 {image.height} {image.x} {image.y} cm /{name} Do Q"
            )
        objects.append(_stream("\n".join(drawn)))
        contents = len(objects)
        resources = f"/Font<</F 3 0 R/B 4 0 R/M 5 0 R>>/XObject<<{' '.join(names)}>>"
        notes = []
        for note in page.fields:
            form = "/Type/XObject/Subtype/Form/BBox[0 0 140 20]/Resources<</Font<</F 3 0 R>>>>"
            objects.append(_stream(Text(2, 5, note.value).draw(), form))
            objects.append(note.write(len(objects)).encode("latin-1"))
            notes.append(f"{len(objects)} 0 R")
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents {contents} 0 R"
            f"/Resources<<{resources}>>/Annots[{' '.join(notes)}]>>".encode()
        )
        kids.append(f"{len(objects)} 0 R")
    objects[0] = b"<</Type/Catalog/Pages 2 0 R>>"
    objects[1] = f"<</Type/Pages/Kids[{' '.join(kids)}]/Count {len(kids)}>>".encode()
    return _assemble(objects)


MEANT = {
    **{chr(ord("a") + k): f"{0x5D0 + k:04X}" for k in range(26)},
    "!": "0084",
    "#": "D835DC61D835DC61",
    "$": "0000",
}
"""What characters of text ``is_meant`` mean, in hexadecimal UTF-16: Hebrew letters, an unnamed
bullet, a letter of an equation that is named twice, a character that isn't named."""
_MEANINGS = (
    "begincmap 1 begincodespacerange <00> <FF> endcodespacerange "
    f"{len(MEANT)} beginbfchar "
    + " ".join(f"<{ord(drawn):02X}> <{meaning}>" for drawn, meaning in MEANT.items())
    + " endbfchar endcmap"
)


def _stream(content: str, head: str = "") -> bytes:
    data = content.encode("latin-1")
    return b"<<%b/Length %d>>stream\n%b\nendstream" % (head.encode(), len(data), data)


def _font(name: str) -> bytes:
    return f"<</Type/Font/Subtype/Type1/BaseFont/{name}/Encoding/WinAnsiEncoding>>".encode()


def _image(image: Image) -> bytes:
    head = (
        f"<</Type/XObject/Subtype/Image/Width {image.across}/Height {image.down}"
        f"/ColorSpace/DeviceRGB/BitsPerComponent 8/Length {len(image.pixels)}>>stream\n"
    )
    return head.encode() + image.pixels + b"\nendstream"


def _assemble(objects: Sequence[bytes]) -> bytes:
    out, places = bytearray(b"%PDF-1.7\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    tail = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer<</Size {size}/Root 1 0 R>>\n"
    return bytes(out) + f"{tail}startxref\n{len(out)}\n%%EOF\n".encode()
