"""The register of whoever reads bytes that others made: where, within which limits, and which test
holds them.

A module with a parser stands here, or among ``OWN_BYTES`` with the reason; a test compares both
with the code, and ``docs/foreign_readers_table.py`` prints the table of the page on security."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

_GRAPHS = "tgraph.extensions.interchange.graphs"
_CRATES = "tgraph.extensions.evidence.crates"
_HOSTILE = "tests/test_foreign_bytes.py"
_IMPORT = f"{_HOSTILE}::test_the_import_of_a_hostile_graph_takes_little_memory"


@dataclass(frozen=True, slots=True)
class ForeignReader:
    """A reader of foreign bytes: in the isolated process, or bounded where it is called."""

    name: str
    place: Literal["isolated", "bounded"]
    limits: str
    test: str
    modules: tuple[str, ...]


def _ingest(*names: str) -> tuple[str, ...]:
    return tuple(f"tgraph.ingest.{name}" for name in names)


READERS = (
    ForeignReader(
        "documents but text and Markdown",
        "isolated",
        "512 MB, 60 s, 200 MB a file; archives unpack to 200 times their size; the text is at most"
        " 200 times the file and 100 MB (`ingest.*`)",
        f"{_HOSTILE}::test_a_hostile_book_and_backup_take_little_memory",
        _ingest(
            *("archive", "csv_tables", "epub", "equations", "html", "html_blocks"),
            *("html_selection", "html_tables", "jats", "latex", "mail", "odf_numbers"),
            *("odf_text", "odf_xml", "ods", "parquet", "pdf", "pdf_annotations"),
            *("pdf_fragments", "pptx", "records", "rst", "word", "word_drawings"),
            *("word_package", "word_styles", "word_xml", "xlsx", "xml_documents"),
            *("xml_tree", "xml_vocabulary"),
        ),
    ),
    ForeignReader(
        "front matter of text and Markdown",
        "bounded",
        "50,000 characters, no aliases; otherwise line by line",
        "tests/test_isolation.py::test_front_matter_with_aliases_is_read_line_by_line",
        _ingest("front_matter"),
    ),
    ForeignReader(
        "what the isolated process sends",
        "bounded",
        "the bytes of its job, checked for its form",
        "tests/test_isolation.py::test_what_a_parser_may_do_wrong_is_an_error_of_its_file",
        _ingest("parser_process"),
    ),
    ForeignReader(
        "tables of GraphRAG, JSON and GraphML of LightRAG",
        "isolated",
        "512 MB, 60 s a batch; 4 rows a byte above 100,000; 100 brackets deep, an object for each"
        " 128 bytes of memory; rows of 100 MB, or of 20 times the file",
        _IMPORT,
        (f"{_GRAPHS}.isolated_files",),
    ),
    ForeignReader(
        "knowledge cores",
        "isolated",
        "512 MB, 60 s a batch, 200 MB a file, 100,000 items a list, triple terms 100 deep",
        "tests/extensions/interchange/graphs/test_cores.py::test_whatever_is_damaged_the_messages_beside_it_are_kept",
        (f"{_GRAPHS}.core_messages",),
    ),
    ForeignReader(
        "JSON-LD and RDF/XML",
        "isolated",
        "512 MB, 60 s a batch, 200 MB a file, 100 brackets deep; packed: 200 times their size",
        _IMPORT,
        _ingest("rdf_statements"),
    ),
    ForeignReader(
        "N-Triples, N-Quads, Turtle, TriG",
        "bounded",
        "200 MB a file, 500 MB and 200 times its size unpacked; lines of 10,000,000 characters;"
        " 100 brackets deep; a statement, or 1,000 lines, at a time",
        _IMPORT,
        (f"{_GRAPHS}.rdf_syntax",),
    ),
    ForeignReader(
        "ontologies and shapes",
        "isolated",
        "50 MB a file, 512 MB, 60 s a batch, 100 brackets deep",
        f"{_HOSTILE}::test_a_deep_ontology_is_refused",
        ("tgraph.extract.ontology_reader",),
    ),
    ForeignReader(
        "shapes that are tried, a user's SPARQL, evidence packages, pages that are drawn",
        "isolated",
        "processes of their own, each with its memory and time; a package of 512 MB, stored",
        "tests/explain/query/test_sparql.py::test_a_query_is_stopped_when_it_needs_too_much_memory",
        (
            "tgraph.explain.audit.shacl_worker",
            "tgraph.explain.query.worker",
            "tgraph.extensions.server.pdf_page",
            *(f"{_CRATES}.{name}" for name in ("about", "container", "contents")),
            *(f"{_CRATES}.{name}" for name in ("reads", "verify_worker")),
        ),
    ),
    ForeignReader(
        "backups",
        "bounded",
        "streamed: no more than the file itself, nothing sparse, 64 MB a header, 5,000,000 files,"
        " a list of their length",
        f"{_HOSTILE}::test_a_sparse_file_in_a_backup_is_refused",
        ("tgraph.extensions.operations.backup", "tgraph.engine.saved_collections"),
    ),
    ForeignReader(
        "segments, contents and journals that replicas follow",
        "bounded",
        "regular files of 1 GB (derived 4 GB, journals 256 MB); unpacked: 200 times their size, or"
        " 256 MB; an entry at a time, objects of texts alone; triple terms and lists 100 deep",
        "tests/test_foreign_bytes.py::test_what_a_replica_follows_unpacks_to_little",
        ("tgraph.librarian",),
    ),
    ForeignReader(
        "settings, GraphRAG's settings",
        "bounded",
        "1 MB, 12 aliases, 12 levels",
        "tests/extensions/interchange/test_config_import.py::test_what_is_no_settings_file",
        ("tgraph.settings", "tgraph.extensions.interchange.graphrag_settings"),
    ),
    ForeignReader(
        "JSON of others: evaluations, histories, reports of GraphRAG, entries of segments",
        "bounded",
        "200 MB, 100 brackets deep, an object for each 128 bytes of 512 MB",
        "tests/test_foreign_bytes.py::test_an_evaluation_of_nothing_but_brackets_is_refused",
        ("tgraph.extensions.lab.evaluation.files", "tgraph.foreign_bytes"),
    ),
    ForeignReader(
        "replies of a model server",
        "bounded",
        "64 MB unpacked, 2,000,000 brackets, ten times `chat.timeout`; no redirect is followed",
        "tests/models/test_reply_limits.py::test_a_packed_reply_of_gigabytes_costs_little_memory",
        ("tgraph.models.reply_limits", "tgraph.models.failures"),
    ),
    ForeignReader(
        "JSON that a model wrote",
        "bounded",
        "within its reply; 100 brackets deep",
        "tests/models/test_structured.py::test_nonsense_is_refused_without_a_long_search",
        ("tgraph.models.json_parsing",),
    ),
    ForeignReader(
        "answers of a SPARQL endpoint",
        "bounded",
        "1 GB, ten times `publish.timeout`, triple terms 100 deep",
        "tests/extensions/interchange/test_publishing.py::test_a_bad_answer_is_a_clear_error",
        ("tgraph.store.sparql_endpoint",),
    ),
    ForeignReader(
        "requests to the server",
        "bounded",
        "`serve.request_kb`",
        "tests/extensions/server/test_rest.py::test_what_is_no_json_is_said",
        ("tgraph.extensions.server.requests",),
    ),
)

_RECORD = "the record and contents of a graph, each named by its hash or sealed"
_QUERY = "rows of tgraph's own query process"
OWN_BYTES: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("tgraph.engine.ask.parameters", "tgraph.engine.ask.question_run"),
            *("tgraph.engine.change.purge", "tgraph.engine.rerun.recorded_retrieval"),
            *("tgraph.explain.as_of.vectors", "tgraph.explain.trace.derivation"),
            *("tgraph.explain.trace.knowledge_diff", "tgraph.explain.trace.recorded_session"),
            *("tgraph.explain.trace.values", "tgraph.explain.audit.shacl"),
            *("tgraph.explain.audit.ontology", "tgraph.record.erasure.document_texts"),
            "tgraph.record.erasure.rewriter",
            *("tgraph.record.ledger", "tgraph.retrieve.orders", "tgraph.store.statements"),
            *("tgraph.store.writer", "tgraph.store.oxigraph", "tgraph.store.journal"),
            *("tgraph.store.files", "tgraph.ingest.blocks", "tgraph.model.computed"),
            *("tgraph.explain.trace.computed", "tgraph.index.catalogue_table"),
            "tgraph.extensions.interchange.first_knowledge",
            "tgraph.extensions.interchange.trustgraph_sessions",
        ),
        _RECORD,
    ),
    **dict.fromkeys(
        (
            *("tgraph.extract.base", "tgraph.index.cooccurrence", "tgraph.index.descriptions"),
            *("tgraph.index.lookup_rows", "tgraph.index.reports.report_table"),
            *("tgraph.ingest.page_reading", "tgraph.models.reply_cache", "tgraph.models.tokens"),
            "tgraph.extensions.operations.collection_health",
        ),
        "caches and tables that tgraph made",
    ),
    **dict.fromkeys(
        ("tgraph.cli.sparql", "tgraph.engine.graph", "tgraph.extensions.server.sparql"), _QUERY
    ),
    "tgraph.extensions.server.mcp_server": _QUERY,
    "tgraph.retrieve.modes.graph": "an argument of the command or of the recorded call",
    **dict.fromkeys(
        (
            *("tgraph.engine.index.workers", "tgraph.executors"),
            *("tgraph.extensions.server.index_worker", "tgraph.extensions.server.jobs"),
        ),
        "between a process of tgraph and its parent",
    ),
    **dict.fromkeys(
        ("tgraph.resources", "tgraph.engine.schemas", "tgraph.models.structured_output"),
        "what ships with tgraph",
    ),
    "tgraph.extensions.server.access": "tokens, a file of the graph's owner",
    **dict.fromkeys(
        ("tgraph.testing.recorded", "tgraph.testing.scripted_steps", "tgraph.testing.server"),
        "tests",
    ),
    **dict.fromkeys(
        ("tgraph.extensions.interchange", "tgraph.extensions.interchange.memory_graphs"),
        "a graph in the memory of the program that imports it",
    ),
    "tgraph.extensions.interchange.knowledge.graphrag_tables": "it writes",
    "tgraph.extensions.operations.replica_shipping": "it writes",
}
"""Modules that parse what tgraph itself wrote, with the reason."""
