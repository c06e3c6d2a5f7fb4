"""Index and ask with a language model over real HTTP: when all goes well, and when it doesn't."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyoxigraph import Literal, NamedNode

import tgraph
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import EndpointError, ModelError, TgraphError, UsageError
from tgraph.explain.trace.reader import Trace
from tgraph.model import Answer, Turn
from tgraph.models.tokens import count_tokens
from tgraph.testing import Fault, ScriptedServer
from tgraph.testing.faults import PROSE, FaultKind
from tgraph.testing.script import parse_blocks

TEXT = """# Marie Curie

Marie Curie discovered Polonium in Paris. Pierre Curie worked with Marie Curie at the Sorbonne.
Henri Becquerel shared the Nobel Prize with Marie Curie.
"""
QUESTION = "What did Marie Curie discover?"
KEY = "sk-test-0123456789abcdef"


@contextmanager
def opened(root: Path, server: ScriptedServer | str, **settings: Any) -> Iterator[KnowledgeGraph]:
    url = server if isinstance(server, str) else server.base_url
    values = {
        "chat.base_url": url,
        "chat.api_key": KEY,
        "chat.model": "scripted",
        "chat.retries": 2,
        "chat.concurrency": 1,
        "embedding.provider": "hashing",
        "extract.gleanings": 0,
    }
    values |= {name.replace("__", "."): value for name, value in settings.items()}
    with tgraph.open(root / "graph", create=True, settings=values) as kg:
        yield kg


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "curie.md").write_text(TEXT)
    return folder


Asked = Callable[..., tuple[Answer | TgraphError, Trace, list[dict[str, Any]]]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The place of a graph that was made without faults."""
    root = tmp_path_factory.mktemp("made")
    (root / "curie.md").write_text(TEXT)
    with ScriptedServer() as server, opened(root, server) as kg:
        kg.index([root / "curie.md"])
    return root


@pytest.fixture
def asked(made: Path) -> Asked:
    """Asks that graph in a fresh way; the answer or the error, its trace and calls."""

    def ask(server: ScriptedServer | str, **settings: Any):
        with opened(made, server, **settings) as kg:
            outcome: Answer | TgraphError
            try:
                outcome = kg.ask(QUESTION)
            except TgraphError as error:
                outcome = error
            trace = kg.trace()
            return outcome, trace, [recorded(kg, call.iri) for call in trace.calls]

    return ask


def recorded(kg: KnowledgeGraph, call: str) -> dict[str, Any]:
    """A call as the librarian has it."""
    key = next(kg.opened.read().match(NamedNode(call), v.tg("contentHash"), None, None)).object
    assert isinstance(key, Literal)
    content = json.loads(kg.opened.librarian.get_text(key.value))
    assert isinstance(content, dict)
    return content


def dropped_in_sources(kg: KnowledgeGraph) -> dict[str, int]:
    """What the record of extraction says was left out."""
    found: dict[str, int] = {}
    for quad in kg.opened.read().match(None, v.tg("reason"), None, v.SOURCE_GRAPH):
        assert isinstance(quad.object, Literal)
        count = next(kg.opened.read().match(quad.subject, v.tg("count"), None, None)).object
        assert isinstance(count, Literal)
        found[quad.object.value] = int(count.value)
    return found


def graph_reply(**rows: Any) -> str:
    return json.dumps({"entities": [], "relationships": [], "attributes": [], **rows})


def relationship(**changes: Any) -> dict[str, Any]:
    row = {
        "subject": "Marie Curie",
        "predicate": "discover",
        "object": "Polonium",
        "description": "",
        "keywords": [],
        "strength": 5,
        "quote": "Marie Curie discovered Polonium in Paris",
    }
    return {**row, **changes}


# --- when all goes well -------------------------------------------------------------------------


@pytest.mark.parametrize("embedding", ["hashing", "openai"])
def test_index_and_ask_record_every_call_and_no_key(tmp_path, documents, embedding):
    with ScriptedServer(api_key=KEY) as server:
        options = {"embedding__provider": embedding, "extract__gleanings": 1}
        with opened(tmp_path, server, **options) as kg:
            report = kg.index([documents])
            made = len(server.requests)
            answer = kg.ask(QUESTION)
            trace = kg.trace()
            calls = [recorded(kg, call.iri) for call in trace.calls]
        over_http = [r for r in server.requests if r.step != "embeddings" or embedding == "openai"]
        assert server.requests == over_http
        probes = embedding == "openai"  # an embedder is asked for its dimension first
        assert report.usage.calls >= made - probes
        assert report.usage.input_tokens > 0
        assert trace.status == "completed"
        assert answer.usage.calls == len(calls) == trace.usage["calls"]
        chats = [c for c in calls if c["kind"] == "chat"]
        sent = [r.body for r in server.requests[made:] if r.step != "embeddings"]
        assert sorted(json.dumps(c["request"], sort_keys=True) for c in chats) == sorted(
            json.dumps(body, sort_keys=True) for body in sent
        )
        assert all(c["reply"]["text"] for c in chats)
        assert answer.usage.output_tokens == sum(
            c["reply"]["usage"]["output_tokens"] for c in chats
        )
    for sentence in answer.sentences:
        for citation in sentence.citations:
            assert TEXT[citation.start : citation.end] == citation.quote
    written = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert written
    assert not [p for p in written if KEY.encode() in p.read_bytes()]


def test_own_prompts_are_used_and_on_record(tmp_path, documents):
    own = tmp_path / "prompts"
    own.mkdir()
    text = "=== system\nStep: synthesise_answer\nBe brief.\n=== user\n{{question}}\n"
    text += "<<<EVIDENCE\n{{evidence}}\nEVIDENCE>>>\n"
    (own / "synthesise_answer.md").write_text(text)
    with ScriptedServer() as server, opened(tmp_path, server, prompts=own) as kg:
        kg.index([documents])
        kg.ask(QUESTION)
        sent = server.requests[-1].body["messages"]
        assert sent[0]["content"] == "Step: synthesise_answer\nBe brief."
        plan = NamedNode(v.prompt_iri("synthesise_answer", sha256(text.encode()).hexdigest()))
        plans = {q.object for q in kg.opened.read().match(None, v.prov("hadPlan"), None, None)}
        assert plan in plans


def test_a_folder_of_prompts_that_replaces_nothing_is_an_error(tmp_path, documents):
    with (
        pytest.raises(UsageError, match="does not exist"),
        opened(tmp_path, "http://127.0.0.1:1/v1", prompts=tmp_path / "nowhere"),
    ):
        pass
    own = tmp_path / "prompts"
    own.mkdir()
    (own / "extract_grpah.md").write_text("=== system\n=== user\n")
    with (
        pytest.raises(UsageError, match=r"replaces no prompt.*extract_graph.md"),
        opened(tmp_path, "http://127.0.0.1:1/v1", prompts=own),
    ):
        pass


# --- a question goes wrong ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "step", "status", "reason"),
    [
        ("prose", "extract_concepts", "failed", "holds no JSON"),
        ("truncated_json", "extract_concepts", "failed", "can't be used"),
        ("empty", "extract_concepts", "failed", "is empty"),
        ("prose", "select_edges", "no-evidence", ""),
        ("unknown_ids", "select_edges", "no-evidence", ""),
        ("empty", "select_edges", "failed", "is empty"),
        ("not_json", "select_edges", "failed", "not an OpenAI-compatible"),
        ("truncated_json", "select_edges", "completed", ""),
        ("over_long", "select_edges", "completed", ""),
        ("length", "select_edges", "completed", ""),
        ("cut_stream", "synthesise_answer", "failed", "broke off"),
        ("unfinished", "synthesise_answer", "failed", "stopped half-way"),
        ("empty", "synthesise_answer", "failed", "is empty"),
        ("prose", "synthesise_answer", "completed", ""),
        ("unknown_ids", "synthesise_answer", "completed", ""),
        ("truncated_json", "synthesise_answer", "completed", ""),
        ("over_long", "synthesise_answer", "failed", "repeated itself"),
        ("drop", "synthesise_answer", "failed", "dropped the connection"),
    ],
)
def test_the_record_says_what_went_wrong(asked, fault: FaultKind, step, status, reason):
    with ScriptedServer(faults=[Fault(fault, step)]) as server:
        outcome, trace, calls = asked(server, chat__retries=0)
    assert trace.status == status
    assert trace.ended
    assert reason in trace.error
    assert isinstance(outcome, TgraphError) == (status == "failed")
    assert len(calls) == trace.usage["calls"]
    assert all(call["request"] and call["reply"] for call in calls)
    if status == "failed":
        assert trace.error == str(outcome)
        assert "error" in calls[-1]["reply"] or calls[-1]["reply"]["text"]
    assert all(c.quote for s in trace.sentences for c in s.citations)


def test_what_a_model_makes_up_is_counted_and_never_shown(asked):
    with ScriptedServer(faults=[Fault("unknown_ids", "select_edges")]) as server:
        _, trace, _ = asked(server)
    assert trace.dropped["unknown edge id"] >= 1
    assert not trace.selected
    assert {edge.reasoning for edge in trace.rejected} == {"the model did not select the edge"}
    with ScriptedServer(faults=[Fault("unknown_ids", "synthesise_answer")]) as server:
        answer, trace, _ = asked(server)
    assert isinstance(answer, Answer)
    assert not [c for s in answer.sentences for c in s.citations]
    expected = {
        "citation of an id that was not shown": len(answer.sentences),
        "sentence without a citation that holds": len(answer.sentences),
    }
    assert answer.dropped == trace.dropped == expected


@pytest.mark.slow
def test_prose_is_on_record_as_such(asked):
    with ScriptedServer(faults=[Fault("prose", "select_edges")]) as server:
        _, trace, _ = asked(server)
    assert trace.dropped == {"malformed row": 1}
    with ScriptedServer(faults=[Fault("prose", "synthesise_answer")]) as server:
        answer, trace, _ = asked(server)
    assert isinstance(answer, Answer)
    assert answer.text == PROSE
    assert trace.dropped["reply in prose instead of rows"] == 1
    assert trace.dropped["sentence without a citation that holds"] == 1


def test_broken_rows_alone_are_no_answer(asked):
    with ScriptedServer({"synthesise_answer": '{"sentence": "Marie Curie disc'}) as server:
        outcome, trace, calls = asked(server)
    assert isinstance(outcome, ModelError)
    assert "broken JSON" in str(outcome)
    assert (trace.status, trace.answer) == ("failed", "")
    assert calls[-1]["reply"]["text"] == '{"sentence": "Marie Curie disc'


def test_a_stream_that_breaks_keeps_its_part_in_the_call(asked):
    with ScriptedServer(faults=[Fault("cut_stream", "synthesise_answer")]) as server:
        outcome, trace, calls = asked(server)
    assert isinstance(outcome, ModelError)
    part = calls[-1]["reply"]
    assert part["text"].startswith('{"sentence"')
    assert "broke off" in part["error"]
    assert trace.calls[-1].error == part["error"]
    assert trace.calls[-1].output_tokens > 0
    assert trace.usage["output_tokens"] == sum(call.output_tokens for call in trace.calls)


@pytest.mark.parametrize("fault", ["rate_limit", "server_error", "drop"])
def test_a_passing_fault_is_tried_again(asked, fault: FaultKind):
    with ScriptedServer(faults=[Fault(fault, times=1, retry_after=0.01)]) as server:
        answer, trace, calls = asked(server)
        assert len(server.requests) == sum(call["kind"] == "chat" for call in calls) + 1
    assert isinstance(answer, Answer)
    assert trace.status == "completed"


def test_a_server_without_response_formats_is_asked_in_words(asked):
    with ScriptedServer(formats=["text"]) as server:
        answer, trace, calls = asked(server)
        assert server.count("extract_concepts") >= 1
    assert isinstance(answer, Answer)
    assert trace.status == "completed"
    assert "response_format" not in calls[0]["request"]
    assert "JSON Schema" in json.dumps(calls[0]["request"]["messages"])


def test_a_wrong_key_is_one_sentence_without_the_key(asked):
    with ScriptedServer(api_key="another") as server:
        outcome, trace, calls = asked(server)
    assert isinstance(outcome, EndpointError)
    assert outcome.exit_code == 5
    assert "OPENAI_API_KEY" in outcome.remedy
    assert KEY not in f"{outcome}{trace}{calls}"
    assert (trace.status, len(calls)) == ("failed", 1)


def test_no_network_is_recorded_too(asked):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        outcome, trace, calls = asked(f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
    assert isinstance(outcome, EndpointError)
    assert outcome.exit_code == 5
    assert "can't be reached" in trace.error
    assert "can't be reached" in calls[0]["reply"]["error"]


# --- indexing goes wrong ------------------------------------------------------------------------


def test_a_chunk_whose_reply_is_useless_does_not_stop_the_run(tmp_path, documents):
    (documents / "ship.txt").write_text("Colin Archer built the Fram in Larvik.")
    with ScriptedServer(faults=[Fault("prose", "extract_graph", times=2)]) as server:
        messages: list[str] = []
        with opened(tmp_path, server) as kg:
            report = kg.index([documents], message=messages.append)
            assert len(report.indexed) == 2
            assert report.dropped == {"chunk whose reply can't be used": 1}
            assert dropped_in_sources(kg) == {"chunk whose reply can't be used": 1}
            assert "curie" in messages[0].lower() or "Marie" in messages[0]
            assert kg.ask("What did Colin Archer build?").sentences


def test_where_no_chunk_has_a_useful_reply_the_command_says_so(tmp_path, documents):
    with ScriptedServer(faults=[Fault("prose", "extract_graph")]) as server:
        options = ["--base-url", server.base_url, "--embedding-provider", "hashing"]
        place = ["-r", str(tmp_path / "graph")]
        done = CliRunner().invoke(cli, ["index", str(documents), "--quiet", *options, *place])
        assert done.exit_code == 1
        assert "No chunk got a usable reply" in done.stderr
        found = CliRunner().invoke(cli, ["ask", "-m", "basic", "-q", QUESTION, *options, *place])
        assert found.exit_code == 0, found.stderr


def test_made_up_quotes_and_broken_rows_are_dropped_and_counted(tmp_path, documents):
    reply = graph_reply(
        entities=[{"name": "Marie Curie", "type": "person"}, {"type": "person"}],
        relationships=[relationship(), relationship(quote="Marie Curie sailed with the Fram.")],
        attributes=[
            {
                "subject": "Polonium",
                "predicate": "be discovered in",
                "value": "spring",
                "datatype": "date",
                "quote": "discovered Polonium",
            }
        ],
    )
    with ScriptedServer({"extract_graph": reply}) as server, opened(tmp_path, server) as kg:
        report = kg.index([documents])
        assert report.dropped == dropped_in_sources(kg)
        assert report.relationships == 2
    assert report.dropped == {
        "relationship whose quote is not in the chunk": 1,
        "attribute whose value does not fit its datatype (kept as text)": 1,
        "malformed row": 1,
    }


def many(folder: Path, count: int) -> None:
    for number in range(count):
        (folder / f"{number}.txt").write_text(f"Ship{number} carried Captain{number} to Oslo.")


@pytest.mark.parametrize("embedding", ["hashing", "openai"])
def test_an_endpoint_failure_keeps_what_was_paid_for(tmp_path, documents, embedding):
    many(documents, 5)
    fault = Fault("unauthorised", "extract_graph", nth=4)
    options = {"embedding__provider": embedding, "extract__gleanings": 1}
    with ScriptedServer(faults=[fault]) as server:
        with opened(tmp_path, server, **options) as kg:
            with pytest.raises(EndpointError) as caught:
                kg.index([documents])
            assert caught.value.exit_code == 5
            report = kg.index([documents])  # the same graph goes on where it was
            assert len(report.indexed) == 6
        texts = [r.body["messages"][-1]["content"] for r in server.requests if r.fault is None
                 and r.step.startswith("extract")]  # fmt: skip
        assert len(texts) == len(set(texts)) == 12
        assert server.count("extract_graph") == 6 + 1


def test_embeddings_are_not_paid_for_twice(tmp_path, documents):
    many(documents, 3)
    options = {"embedding__provider": "openai", "embedding__batch_size": 4}
    fault = Fault("unauthorised", "embeddings", nth=3)
    with ScriptedServer(faults=[fault]) as server:
        for expected in (EndpointError, None):
            with opened(tmp_path, server, **options) as kg:
                if expected:
                    with pytest.raises(expected):
                        kg.index([documents])
                else:
                    kg.index([documents])
        bodies = [
            r.body["input"] for r in server.requests if r.step == "embeddings" and not r.fault
        ]
        texts = [text for batch in bodies for text in batch if text != "dimension"]
        assert len(texts) == len(set(texts)) > 12


def test_an_interruption_ends_at_once_and_loses_nothing(tmp_path, documents):
    """The third request hangs; Ctrl-C comes while it does."""
    many(documents, 4)
    fault = Fault("hang", "extract_graph", nth=3)
    with ScriptedServer(faults=[fault]) as server:

        def interrupt(progress: Any) -> None:
            if progress.stage == "Extracting" and progress.done == 2:
                waiting = threading.Event()
                while server.count("extract_graph") < 3:
                    waiting.wait(0.01)
                raise KeyboardInterrupt

        with opened(tmp_path, server) as kg:
            with pytest.raises(KeyboardInterrupt):
                kg.index([documents], progress=interrupt)
            assert server.count("extract_graph") == 3  # and no more were begun
            report = kg.index([documents])
            assert len(report.indexed) == 5
            assert kg.ask("What did Ship1 carry?").session
        assert server.count("extract_graph") == 3 + 3


# --- the command line ---------------------------------------------------------------------------


def test_the_command_ends_with_exit_code_5(tmp_path, documents, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with ScriptedServer(api_key="another") as server:
        options = ["--base-url", server.base_url, "--embedding-provider", "hashing"]
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        result = CliRunner().invoke(cli, ["index", str(documents), *options])
    assert result.exit_code == 5
    assert "OPENAI_API_KEY" in result.stderr
    assert "Traceback" not in result.stderr
    assert KEY not in result.output


# --- the token budget ---------------------------------------------------------------------------


def test_edges_over_the_token_budget_are_rejected_with_the_reason(asked):
    with ScriptedServer() as server:
        _, whole, _ = asked(server)
        _, trace, calls = asked(server, graph__max_context_tokens=500)
    reasons = [edge.reasoning for edge in trace.rejected]
    assert any("token budget" in reason for reason in reasons)
    assert trace.selected
    assert len(trace.selected) + len(reasons) == len(whole.selected) + len(whole.rejected)
    for call in calls:
        if call["kind"] == "chat":
            sent = "\n".join(m["content"] for m in call["request"]["messages"])
            assert count_tokens(sent) <= 500
    assert trace.parameters["max-context-tokens"] == "500"


def test_a_budget_without_room_is_said(tmp_path, documents):
    with ScriptedServer() as server, opened(tmp_path, server) as kg:
        kg.index([documents])
    with ScriptedServer() as server, opened(tmp_path, server, graph__max_context_tokens=500) as kg:
        with pytest.raises(UsageError, match="max_context_tokens"):
            kg.ask(QUESTION, history=[Turn("Who?", "Marie Curie. " * 300)])
        assert kg.trace().status == "failed"


def test_what_was_asked_before_is_not_proposed_again(tmp_path, documents):
    def propose(request: Any) -> str:
        (first, *_) = parse_blocks(request.body["messages"])["EVIDENCE"].splitlines()
        cited = [json.loads(first)["id"]]
        said = ["Who helped her?", "WHAT did Marie Curie discover?", "Who  helped her?", "Where?"]
        return "\n".join(json.dumps({"sentence": s, "citations": cited}) for s in said)

    told = [Turn(QUESTION, "Polonium.")]
    with (
        ScriptedServer({"suggest_questions": propose}) as server,
        opened(tmp_path, server) as kg,
    ):
        kg.index([documents])
        proposed = kg.suggest(3, history=told)
        assert [sentence.text for sentence in proposed.sentences] == ["Who helped her?", "Where?"]
        assert kg.trace(proposed.session).dropped == {"question that was asked before": 2}
