"""Makes PDFs of texts, rules and images at given places (PDF 1.7, 7.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Text:
    """A line of Helvetica, its baseline beginning at a place from the lower left corner; ``text``
    is the inside of a PDF's string."""

    x: float
    y: float
    text: str
    size: float = 11
    bold: bool = False
    mode: int = 0
    turned: bool = False

    def draw(self) -> str:
        matrix = "0 1 -1 0" if self.turned else "1 0 0 1"
        font = "B" if self.bold else "F"
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
    rules: Sequence[Rule | Wave] = ()
    images: Sequence[Image] = field(default=())


def make_pdf(*pages: PdfPage) -> bytes:
    """Return a PDF of pages."""
    objects: list[bytes] = [b"", b"", _font("Helvetica"), _font("Helvetica-Bold")]
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
        stream = "\n".join(drawn).encode("latin-1")
        objects.append(b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream))
        resources = f"/Font<</F 3 0 R/B 4 0 R>>/XObject<<{' '.join(names)}>>"
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents {len(objects)} 0 R"
            f"/Resources<<{resources}>>>>".encode()
        )
        kids.append(f"{len(objects)} 0 R")
    objects[0] = b"<</Type/Catalog/Pages 2 0 R>>"
    objects[1] = f"<</Type/Pages/Kids[{' '.join(kids)}]/Count {len(kids)}>>".encode()
    return _assemble(objects)


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
