"""How much of a file is in the stored text, against an independent reader of its format.

    python -m benchmarks.reading FOLDER... [--formats docx,pdf] [--worst 10] [--json FILE]

The independent readers are LibreOffice (``soffice``; DOCX, ODT, XLSX, ODS as text, PPTX and ODP
as its own presentations, for the lines of printed slides break words), poppler (``pdftotext``;
PDF) and a browser (chromium through playwright, ``document.body.innerText``; HTML, and the chapters
of EPUB in their order). A format whose independent reader isn't installed is left out, and said to
be. Public fixtures that can be measured are those of docling (``tests/data``), markitdown
(``packages/markitdown/tests/test_files``) and Unstructured (``example-docs``).

For each format, in medians over its files:

- kept: the share of the independent reader's words that stand in the stored text in the same order
  (longest common subsequence of words, by bits: Hyyrö 2004)
- found: the same share whatever the order (multisets of words)
- added: the share of the stored text's words that the independent reader doesn't have; marks such
  as ``[image: A map]`` are not counted
- refused: files that tgraph doesn't read, with an error that says why
- unsaid: files with less than 0.9 kept whose reading report names no loss and no warning

A file is left out where the independent reader finds under twenty words.
"""

from __future__ import annotations

import argparse
import codecs
import json
import posixpath
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

from tgraph.errors import IngestError
from tgraph.ingest.files import load
from tgraph.model import Document

WORD = re.compile(r"\w+")
THOUSANDS = re.compile(r"(?<=\d)[,'’\u00a0\u202f](?=\d{3}(?!\d))")
FEWEST_WORDS = 20
LEAST_KEPT = 0.9
LONGEST_CONVERSION = 120
OFFICE = ("docx", "odt", "pptx", "odp", "xlsx", "ods")
ALL_SHEETS = "csv:Text - txt - csv (StarCalc):32,34,76,1,,0,false,true,false,false,false,-1"
TARGETS = {
    **dict.fromkeys(("docx", "odt"), "txt:Text (encoded):UTF8"),
    **dict.fromkeys(("xlsx", "ods"), ALL_SHEETS),
    **dict.fromkeys(("pptx", "odp"), "fodp"),
}
TEXT_NAMES = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
PARAGRAPHS = (f"{{{TEXT_NAMES}}}p", f"{{{TEXT_NAMES}}}h")


@dataclass(frozen=True, slots=True)
class Measured:
    """A file's shares; ``error`` is tgraph's where the file is refused."""

    file: str
    format: str
    words: int = 0
    kept: float = 0.0
    found: float = 0.0
    added: float = 0.0
    losses: int = 0
    warnings: int = 0
    error: str = ""

    @property
    def is_unsaid(self) -> bool:
        return not self.error and self.kept < LEAST_KEPT and not self.losses + self.warnings


def split_text(text: str) -> list[str]:
    """Return a text's words in canonical form, without accents of typography or case; a number is
    one word with and without separators of thousands (LibreOffice's CSV has none of them)."""
    return WORD.findall(unicodedata.normalize("NFKC", THOUSANDS.sub("", text)).casefold())


def common_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence (bit-parallel; Hyyrö 2004)."""
    masks: dict[str, int] = {}
    for place, word in enumerate(first):
        masks[word] = masks.get(word, 0) | 1 << place
    everything = (1 << len(first)) - 1
    row = everything
    for word in second:
        matches = row & masks.get(word, 0)
        row = ((row + matches) | (row - matches)) & everything
    return len(first) - row.bit_count()


def stored_text(document: Document) -> str:
    """Return a document's stored text without the marks of what isn't text."""
    parts = []
    for page in document.pages:
        at = 0
        for block in page.blocks:
            if block.kind == "mark":
                parts.append(page.text[at : block.start])
                at = block.end
        parts.append(page.text[at:])
    return "\n".join(parts)


def measure_file(path: Path, independent: str) -> Measured | None:
    """Return the shares of a file; None where the independent reader finds too few words."""
    kind = path.suffix[1:].lower()
    theirs = split_text(independent)
    if len(theirs) < FEWEST_WORDS:
        return None
    try:
        document = load(path)
    except IngestError as error:
        return Measured(path.name, kind, len(theirs), error=error.message)
    ours = split_text(stored_text(document))
    shared = (Counter(ours) & Counter(theirs)).total()
    report = document.report
    return Measured(
        path.name,
        kind,
        len(theirs),
        common_length(theirs, ours) / len(theirs),
        shared / len(theirs),
        1 - shared / max(1, len(ours)),
        sum(loss.count for loss in report.losses) if report else 0,
        len(report.warnings) if report else 0,
    )


# --- independent readers ----------------------------------------------------------------------


def run_program(*command: str) -> str:
    """Return a program's output; empty where it fails or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=LONGEST_CONVERSION, check=False)
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.decode("utf-8", "replace")


def read_pdf(path: Path) -> str:
    return run_program("pdftotext", "-q", str(path), "-")


def read_office(path: Path) -> str:
    """Return LibreOffice's text of an office file: of presentations by way of its own format, of
    a workbook sheet by sheet."""
    kind = path.suffix[1:].lower()
    with tempfile.TemporaryDirectory() as folder:
        profile = f"-env:UserInstallation=file://{tempfile.gettempdir()}/tgraph-reading-profile"
        run_program(
            *("soffice", profile, "--headless", "--convert-to", TARGETS[kind]),
            *("--outdir", folder, str(path)),
        )
        results = {result.name: result for result in Path(folder).iterdir()}
        if kind in ("pptx", "odp"):
            return "\n".join(map(read_slides, results.values()))
        texts = {name: result.read_text("utf-8", "replace") for name, result in results.items()}
        if kind in ("xlsx", "ods") and zipfile.is_zipfile(path):
            sheets = ((name, f"{path.stem}-{name}.csv") for name in sheet_names(path))
            return "\n".join(f"{name}\n{texts[file]}" for name, file in sheets if file in texts)
        return "\n".join(texts.values())


def read_slides(path: Path) -> str:
    """Return the paragraphs of the slides and notes that LibreOffice has in a presentation."""
    for _, element in ElementTree.iterparse(path):
        name = element.tag.rpartition("}")[2]
        if name in ("s", "tab", "line-break"):
            element.text = " " * int(element.get(f"{{{TEXT_NAMES}}}c", "1"))
        elif name == "page-number":
            element.text = ""
        elif name == "presentation":
            slides = element.iterfind(".//{*}page")
            parts = (part for slide in slides for part in slide.iter() if part.tag in PARAGRAPHS)
            return "\n".join("".join(part.itertext()) for part in parts)
    return ""


def sheet_names(path: Path) -> list[str]:
    """Return the names of the sheets of a workbook that are shown, in their order."""
    is_ods = path.suffix.lower() == ".ods"
    with zipfile.ZipFile(path) as book:
        root = ElementTree.fromstring(book.read("content.xml" if is_ods else "xl/workbook.xml"))
    sheets = root.iterfind(".//{*}spreadsheet/{*}table" if is_ods else ".//{*}sheets/{*}sheet")
    shown = (sheet for sheet in sheets if sheet.get("state", "visible") == "visible")
    return [next(v for k, v in sheet.items() if k.endswith("name")) for sheet in shown]


def spine_names(book: zipfile.ZipFile) -> list[str]:
    """Return the names of a book's chapters in the order in which a person turns its pages."""
    container = ElementTree.fromstring(book.read("META-INF/container.xml"))
    package_name = next(container.iterfind(".//{*}rootfile")).attrib["full-path"]
    package = ElementTree.fromstring(book.read(package_name))
    paths = {
        item.get("id"): unquote(item.get("href", "")) for item in package.iterfind(".//{*}item")
    }
    chapters = [
        paths.get(reference.get("idref"), "") for reference in package.iterfind(".//{*}itemref")
    ]
    folder = posixpath.dirname(package_name)
    return [posixpath.normpath(posixpath.join(folder, path)) for path in chapters]


class Browser:
    """A browser without a network that shows pages and gives their visible text."""

    def __init__(self) -> None:
        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(executable_path=shutil.which("chromium"))
        self._page = self._browser.new_context(offline=True, java_script_enabled=True).new_page()
        self._page.route("**/*", lambda route: route.fulfill(body="", content_type="text/css"))

    def read_html(self, path: Path) -> str:
        return self._read(path.read_bytes())

    def read_epub(self, path: Path) -> str:
        try:
            with zipfile.ZipFile(path) as book:
                chapters = [name for name in spine_names(book) if name in book.namelist()]
                return "\n".join(self._read(book.read(name)) for name in chapters)
        except (zipfile.BadZipFile, KeyError, StopIteration, ElementTree.ParseError):
            return ""

    def _read(self, data: bytes) -> str:
        head = re.search(rb"charset\s*=\s*[\"']?([\w-]+)", data[:4096])
        is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        encoding = "utf-16" if is_wide else head[1].decode() if head else "utf-8"
        text = data.decode(encoding, "replace")
        try:
            self._page.set_content(text, wait_until="commit", timeout=10_000)
            return str(self._page.evaluate("document.body ? document.body.innerText : ''"))
        except Exception as error:
            print(f"The browser failed: {error}", file=sys.stderr)
            return ""


def make_readers() -> dict[str, Callable[[Path], str]]:
    """Return the independent readers that this machine has, by suffix."""
    readers: dict[str, Callable[[Path], str]] = {}
    if shutil.which("soffice"):
        readers |= dict.fromkeys(OFFICE, read_office)
    if shutil.which("pdftotext"):
        readers["pdf"] = read_pdf
    try:
        browser = Browser()
    except Exception as error:
        print(f"No browser: {type(error).__name__}. Run `playwright install chromium`.")
    else:
        readers |= {"html": browser.read_html, "htm": browser.read_html, "epub": browser.read_epub}
    return readers


# --- the table ----------------------------------------------------------------------------------


def find_files(folders: Sequence[Path], formats: frozenset[str]) -> Iterator[Path]:
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix[1:].lower() in formats:
                yield path


def table_lines(results: Sequence[Measured]) -> Iterator[str]:
    """Yield the table of formats as Markdown."""
    yield "| format | files | refused | kept | found | added | kept under 0.9 | of these unsaid |"
    yield "|---|---|---|---|---|---|---|---|"
    for kind in sorted({result.format for result in results}):
        group = [result for result in results if result.format == kind]
        read = [result for result in group if not result.error]
        shares = [
            f"{statistics.median(values):.3f}" if values else ""
            for values in ([r.kept for r in read], [r.found for r in read], [r.added for r in read])
        ]
        low = [result for result in read if result.kept < LEAST_KEPT]
        unsaid = sum(result.is_unsaid for result in low)
        counts = f"{len(group)} | {len(group) - len(read)}"
        yield f"| {kind} | {counts} | {' | '.join(shares)} | {len(low)} | {unsaid} |"


def worst_lines(results: Sequence[Measured], most: int) -> Iterator[str]:
    yield "| file | kept | found | added | losses | warnings |"
    yield "|---|---|---|---|---|---|"
    read = [result for result in results if not result.error]
    for r in sorted(read, key=lambda result: result.kept)[:most]:
        shares = f"{r.kept:.3f} | {r.found:.3f} | {r.added:.3f}"
        yield f"| {r.file} | {shares} | {r.losses} | {r.warnings} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--formats", default="", help="suffixes, separated by commas")
    parser.add_argument("--worst", type=int, default=10)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    readers = make_readers()
    wanted = frozenset(arguments.formats.split(",")) if arguments.formats else frozenset(readers)
    results = []
    for path in find_files(arguments.folders, wanted & frozenset(readers)):
        measured = measure_file(path, readers[path.suffix[1:].lower()](path))
        if measured is not None:
            results.append(measured)
    for line in (*table_lines(results), "", *worst_lines(results, arguments.worst)):
        print(line)
    for result in results:
        if result.error:
            print(f"Refused: {result.file}: {result.error}")
    if missing := sorted(wanted - frozenset(readers)):
        print("Not measured, for lack of an independent reader:", ", ".join(missing))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(r) for r in results], indent=1), "utf-8")


if __name__ == "__main__":
    main()
