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
- found: the same share whatever the order (multisets of words)
- added: the share of the stored text's words that the independent reader doesn't have; marks such
  as ``[image: A map]`` are not counted
- refused: files that tgraph doesn't read, with an error that says why
- unsaid: files with less than 0.9 kept whose reading report names no loss and no warning

What is in the same order is a longest common subsequence of words (by bits: Hyyrö 2004). A PDF says
where its words are drawn, not in which order they are read, so the order is poppler's best of three
for each page: its reading order, the order of drawing (``-raw``), and rows from side to side
(``-layout``) where no prose stands beside prose. A block that stands elsewhere than there counts
where it is whole: of a run of more than sixteen words, more than a line of a column has, those
beyond the sixteenth. So columns whose lines are mixed count for one column. Hyphens count for
nothing, and words that are cut otherwise between two that are the same (``l e t t e r``) count
where their characters are the same. The end of a page counts with the next, since tgraph carries
sentences over page breaks. Running heads that tgraph leaves out count as lost.

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
from dataclasses import asdict, dataclass, replace
from difflib import SequenceMatcher
from itertools import chain, pairwise
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

from tgraph.errors import IngestError
from tgraph.ingest.base import DEFAULT_LIMITS
from tgraph.ingest.files import load
from tgraph.model import Document

WORD = re.compile(r"\w+")
HYPHEN = re.compile(r"(?<=\w)[-\u00ad\u2010\u2011](?:\s*\n\s*)?(?=\w)")
TWICE = re.compile("([\U0001d400-\U0001d7ff])\\1")
LONGEST_LINE = 16
LEAST_PIECE = 4
PROSE_WORDS = 4
MOST_CELLS = 4_000_000_000
CARRIED = 80
THOUSANDS = re.compile(r"(?<=\d)[,'’\u00a0\u202f](?=\d{3}(?!\d))")
FEWEST_WORDS = 20
LEAST_KEPT = 0.9
LONGEST_CONVERSION = 120
LIMITS = replace(DEFAULT_LIMITS, seconds=600)
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
    """Return a text's words in canonical form, without hyphens, case, or the second of two
    mathematical letters that Word's equations have for one; a number is one word with and without
    separators of thousands (LibreOffice's CSV has none of them)."""
    plain = unicodedata.normalize("NFKC", THOUSANDS.sub("", TWICE.sub(r"\1", text))).casefold()
    return WORD.findall(HYPHEN.sub("", plain))


Pairs = list[tuple[int, int]]


def align_words(first: Sequence[str], second: Sequence[str]) -> Pairs:
    """Return the places of a longest common subsequence (bit-parallel; Hyyrö 2004)."""
    masks: dict[str, int] = {}
    for place, word in enumerate(first):
        masks[word] = masks.get(word, 0) | 1 << place
    everything = (1 << len(first)) - 1
    rows = [everything]
    for word in second:
        row = rows[-1]
        matches = row & masks.get(word, 0)
        rows.append(((row + matches) | (row - matches)) & everything)
    pairs = []
    i, j = len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif rows[j] >> (i - 1) & 1:
            i -= 1
        else:
            j -= 1
    return pairs[::-1]


def find_recut(first: Sequence[str], second: Sequence[str], pairs: Pairs) -> Iterator[int]:
    """Yield the places of words whose characters stand, cut otherwise, between the same words."""
    for (i, j), (i_end, j_end) in pairwise([(-1, -1), *pairs, (len(first), len(second))]):
        texts = "".join(first[i + 1 : i_end]), "".join(second[j + 1 : j_end])
        if not all(texts) or max(map(len, texts)) > 100 * LEAST_PIECE:
            continue
        blocks = SequenceMatcher(None, *texts, autojunk=False).get_matching_blocks()
        same = {k for at, _, n in blocks if n >= LEAST_PIECE for k in range(at, at + n)}
        at = 0
        for place in range(i + 1, i_end):
            end = at + len(first[place])
            if same.issuperset(range(at, end)):
                yield place
            at = end


def count_moved(first: Sequence[str], second: Sequence[str], held: set[int], pairs: Pairs) -> int:
    """Return how many words stand in another place, each in a run that is longer than a line."""
    others = {j for _, j in pairs}
    ours = [str(j) + " " if j in others else word for j, word in enumerate(second)]
    theirs = [" " + str(i) if i in held else word for i, word in enumerate(first)]
    moved = 0
    while True:
        run = SequenceMatcher(None, theirs, ours, autojunk=False).find_longest_match()
        if run.size <= LONGEST_LINE:
            return moved
        moved += run.size - LONGEST_LINE
        for k in range(run.size):
            theirs[run.a + k], ours[run.b + k] = f" {run.a + k}", f"{run.b + k} "


def count_kept(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many words of a text another one has in the same order."""
    if len(first) * len(second) > MOST_CELLS:
        half = len(first) // 2, len(second) // 2
        return sum(
            count_kept(first[part], second[other])
            for part, other in zip(*((slice(k), slice(k, None)) for k in half), strict=True)
        )
    pairs = align_words(first, second)
    held = {i for i, _ in pairs}
    held.update(find_recut(first, second, pairs))
    return len(held) + count_moved(first, second, held, pairs)


Order = Sequence[Sequence[str]]
"""The words of each page."""


def match_pages(orders: Sequence[Order], ours: Order) -> tuple[int, int]:
    """Return how many words are kept of how many, by the best order of each page."""
    if any(len(order) != len(ours) for order in orders):
        orders = [[list(chain.from_iterable(order))] for order in orders]
        ours = [list(chain.from_iterable(ours))]
    kept = words = 0
    for number, page in enumerate(ours):
        before = ours[number - 1][-CARRIED:] if number else ()
        counts = [
            (count_kept(order[number], [*before, *page]), len(order[number])) for order in orders
        ]
        best, length = max(counts, key=lambda count: count[0] / max(count[1], 1))
        kept, words = kept + best, words + length
    return kept, words


def stored_pages(document: Document) -> Iterator[str]:
    """Yield the stored text of each page without the marks of what isn't text."""
    for page in document.pages:
        parts, at = [], 0
        for block in page.blocks:
            if block.kind == "mark":
                parts.append(page.text[at : block.start])
                at = block.end
        yield "".join((*parts, page.text[at:]))


Reading = Sequence[Sequence[str]]
"""What an independent reader reads: the pages' texts, in each of its orders."""


def measure_file(path: Path, independent: Reading) -> Measured | None:
    """Return the shares of a file; None where the independent reader finds too few words."""
    kind = path.suffix[1:].lower()
    orders = [[split_text(page) for page in pages] for pages in independent]
    theirs = list(chain.from_iterable(orders[0]))
    if len(theirs) < FEWEST_WORDS:
        return None
    try:
        document = load(path, limits=LIMITS)
    except IngestError as error:
        return Measured(path.name, kind, len(theirs), error=error.message)
    pages = [split_text(page) for page in stored_pages(document)]
    ours = list(chain.from_iterable(pages))
    shared = (Counter(ours) & Counter(theirs)).total()
    kept, words = match_pages(orders, pages)
    report = document.report
    return Measured(
        path.name,
        kind,
        len(theirs),
        kept / words,
        max(shared / len(theirs), kept / words),
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


def read_pdf(path: Path) -> Reading:
    usual, drawn, rows = (
        run_program("pdftotext", "-q", *order, str(path), "-").removesuffix("\f").split("\f")
        for order in ((), ("-raw",), ("-layout",))
    )
    pages = zip(usual, rows, strict=True)
    return usual, drawn, [first if has_columns(page) else page for first, page in pages]


def has_columns(page: str) -> bool:
    """Return whether several lines of a page, laid out as it is, have prose beside prose."""
    lines = (re.split(r" {2,}", line.strip()) for line in page.split("\n"))
    prose = (sum(len(part.split()) >= PROSE_WORDS for part in line) for line in lines)
    return sum(count > 1 for count in prose) >= PROSE_WORDS


def read_office(path: Path) -> Reading:
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
            return [[read_slides(result) for result in results.values()]]
        texts = {name: result.read_text("utf-8", "replace") for name, result in results.items()}
        if kind in ("xlsx", "ods") and zipfile.is_zipfile(path):
            sheets = ((name, f"{path.stem}-{name}.csv") for name in sheet_names(path))
            return [[f"{name}\n{texts[file]}" for name, file in sheets if file in texts]]
        return [list(texts.values())]


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

    def read_html(self, path: Path) -> Reading:
        return [[self._read(path.read_bytes())]]

    def read_epub(self, path: Path) -> Reading:
        try:
            with zipfile.ZipFile(path) as book:
                chapters = [name for name in spine_names(book) if name in book.namelist()]
                return [[self._read(book.read(name)) for name in chapters]]
        except (zipfile.BadZipFile, KeyError, StopIteration, ElementTree.ParseError):
            return [[""]]

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


def make_readers() -> dict[str, Callable[[Path], Reading]]:
    """Return the independent readers that this machine has, by suffix."""
    readers: dict[str, Callable[[Path], Reading]] = {}
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
