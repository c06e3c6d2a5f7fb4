"""Small files that unpack to gigabytes, or are nested very deep, and one that is only large."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path
from random import Random

from tgraph.extensions.interchange.graphs.isolated_files import read_table
from tgraph.ingest.base import DEFAULT_LIMITS

DEEP = 20_000


def write_parquet_bomb(folder: Path) -> Path:
    """GraphRAG's tables, a kilobyte each, whose rows share one text of eight megabytes."""
    import pyarrow
    from pyarrow import parquet

    folder.mkdir(parents=True)
    for name in ("entities", "relationships"):
        texts = pyarrow.DictionaryArray.from_arrays(
            pyarrow.array([0] * 1_000, pyarrow.int32()), pyarrow.array(["a" * 8_000_000])
        )
        table = pyarrow.table({"title": texts, "source": texts, "target": texts})
        parquet.write_table(table, folder / f"{name}.parquet", compression="zstd")
    return folder


def write_parquet_of_nulls(folder: Path) -> Path:
    """GraphRAG's tables with ten million empty rows in a few kilobytes."""
    import pyarrow
    from pyarrow import parquet

    folder.mkdir(parents=True)
    for name in ("entities", "relationships"):
        table = pyarrow.table({"title": pyarrow.nulls(10_000_000, pyarrow.string())})
        parquet.write_table(table, folder / f"{name}.parquet", compression="zstd")
    return folder


def write_deep_jsonld(file: Path) -> Path:
    """JSON-LD of which each node lies in another."""
    node, end = '{"http://example.org/p":', "}" * DEEP
    file.write_text(f'{node * DEEP}"x"{end}')
    return file


def write_deep_turtle(file: Path) -> Path:
    """Turtle of triple terms that lie in each other."""
    term = "<http://example.org/a> <http://example.org/p> "
    file.write_text(f"{term}{f'<<( {term}' * DEEP}<http://example.org/b>{' )>>' * DEEP} .\n")
    return file


def write_packed_triples(file: Path, megabytes: int = 400) -> Path:
    """Statements that are all alike."""
    line = b"<http://example.org/a> <http://example.org/p> <http://example.org/b> .\n"
    block = line * (1_000_000 // len(line))
    with gzip.open(file, "wb", 9) as out:
        for _ in range(megabytes):
            out.write(block)
    return file


def write_epub_bomb(file: Path, chapters: int = 2) -> Path:
    """A book of ten megabytes a chapter."""
    names = [f"c{number}" for number in range(chapters)]
    items = "".join(
        f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"/>'
        for name in names
    )
    spine = "".join(f'<itemref idref="{name}"/>' for name in names)
    text = "Word and so on. " * 600_000
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as book:
        book.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        book.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="p.opf"/></rootfiles></container>',
        )
        book.writestr(
            "p.opf",
            '<package xmlns="http://www.idpf.org/2007/opf"><metadata/>'
            f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
        )
        for name in names:
            book.writestr(f"{name}.xhtml", f"<html><body><p>{text}</p></body></html>")
    return file


def write_sparse_backup(file: Path, size: int = 20_000_000_000) -> Path:
    """A backup with a sparse file."""
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("collections/default/vectors/a.npy")
        member.size = 1
        member.pax_headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(size)}
        archive.addfile(member, io.BytesIO(b"x"))
    return file


def write_lightrag_json(file: Path) -> Path:
    """A custom graph of LightRAG with a list of ten million empty objects."""
    empty = ",".join(["{}"] * 1_000_000)
    file.write_text(f'{{"entity_name": 1, "entities": [{",".join([empty] * 10)}]}}')
    return file


def write_large_table(file: Path, rows: int = 60_000) -> Path:
    """A table of texts that can't be packed."""
    import pyarrow
    from pyarrow import parquet

    random = Random(1)
    texts = [random.randbytes(1_000).hex() for _ in range(rows)]
    parquet.write_table(pyarrow.table({"title": texts}), file, compression="zstd")
    return file


def read_whole_table(file: Path) -> None:
    total = sum(len(row["title"]) for row in read_table(file, DEFAULT_LIMITS))
    assert total == 120_000_000
