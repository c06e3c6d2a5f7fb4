"""Clients against a real HTTP server on loopback, with every fault that it can have."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph.errors import EndpointError, ModelError, RefusedPromptError, UsageError
from tgraph.model import Prompt, Usage
from tgraph.models.base import Call, ChatReply, ChatRequest, decode_vectors
from tgraph.models.concurrency import Cancellation, Limiter, RunCancelledError, Window
from tgraph.models.endpoint import Endpoint, back_off
from tgraph.models.failures import retry_after
from tgraph.models.openai import OpenAIChat, OpenAIEmbedder
from tgraph.models.server_capabilities import ServerCapabilities
from tgraph.testing import Fault, ScriptedServer, ticking_clock
from tgraph.testing.server import ServerRequest

KEY = "sk-very-secret-0123456789"
SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}
PROMPT = Prompt("say", "Say it.", "0" * 64)
REQUEST = ChatRequest(
    PROMPT,
    [{"role": "system", "content": "Step: say"}, {"role": "user", "content": "Speak, please."}],
)
STRUCTURED = replace(REQUEST, schema=SCHEMA, max_tokens=50, seed=7)
STORY = "Once upon a time there was a fox who lived by the sea and read the papers."


@contextmanager
def served(*faults: str | Fault, retries: int = 1, **options: Any) -> Iterator[Any]:
    """A chat client, its server and the calls that it has made."""
    parsed = [f if isinstance(f, Fault) else Fault.parse(f) for f in faults]
    replies = options.pop("replies", {"say": STORY})
    timeout = options.pop("timeout", 20.0)
    calls: list[Call] = []
    with (
        ScriptedServer(replies, faults=parsed, **options) as server,
        OpenAIChat(
            "m", Endpoint(server.base_url, KEY, retries=retries, timeout=timeout, first_wait=0.01)
        ) as chat,
    ):
        yield chat, server, calls


def streamed(chat: OpenAIChat, request: ChatRequest, calls: list[Call]) -> ChatReply:
    pieces: list[str] = []

    def run() -> Iterator[ChatReply]:
        reply = yield from chat.stream(request, calls.append)  # type: ignore[misc]
        pieces.append(reply.text)
        yield reply

    *text, reply = run()
    assert "".join(text) == pieces[0]  # type: ignore[arg-type]
    return reply


def completed(chat: OpenAIChat, request: ChatRequest, calls: list[Call]) -> ChatReply:
    return chat.complete(request, calls.append)


both = pytest.mark.parametrize("run", [completed, streamed])
Run = Callable[[OpenAIChat, ChatRequest, list[Call]], ChatReply]


# --- what goes well -----------------------------------------------------------------------------


@both
def test_a_reply_and_its_record(run: Run) -> None:
    with served() as (chat, server, calls):
        reply = run(chat, REQUEST, calls)
    assert (reply.text, reply.finish_reason, reply.model) == (STORY, "stop", "m")
    (call,) = calls
    (sent,) = server.requests
    assert dict(call.request) == sent.body
    assert call.reply["text"] == STORY
    assert "estimated" not in call.reply["usage"]
    assert call.usage == reply.usage == Usage(call.reply["usage"]["input_tokens"], 19, 1)
    assert (call.prompt, call.agent) == (PROMPT, chat.agent)
    assert call.started < call.ended
    assert sent.key == KEY
    assert KEY not in repr(call)


def test_rows_come_in_pieces_and_prose_when_it_can_be_no_thought_any_more() -> None:
    rows = json.dumps({"sentence": STORY})
    with served(replies={"say": [rows, STORY]}) as (chat, _, _):
        pieces = list(chat.stream(REQUEST))
        prose = list(chat.stream(REQUEST))
    assert len(pieces) > 2
    assert "".join(pieces) == rows
    assert prose == [STORY]


def test_the_clock_is_the_callers() -> None:
    calls: list[Call] = []
    with (
        ScriptedServer() as server,
        OpenAIChat("m", Endpoint(server.base_url), clock=ticking_clock()) as chat,
    ):
        chat.complete(REQUEST, calls.append)
    assert calls[0].ended - calls[0].started == timedelta(milliseconds=1)


@pytest.mark.parametrize("usage", ["many", [1], {"prompt_tokens": "3"}, {"prompt_tokens": -3}])
@pytest.mark.parametrize("run", [completed, streamed])
def test_usage_of_another_type_is_none(
    run: Run, usage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tgraph.testing.server._estimate_usage", lambda *_: usage)
    with served() as (chat, _, calls):
        reply = run(chat, REQUEST, calls)
    assert calls[0].reply["usage"]["estimated"] is True
    assert reply.usage.input_tokens > 5


@both
def test_usage_is_estimated_and_marked_where_the_server_has_none(run: Run) -> None:
    with served(report_usage=False) as (chat, _, calls):
        reply = run(chat, REQUEST, calls)
    assert calls[0].reply["usage"]["estimated"] is True
    assert reply.usage.output_tokens > 10
    assert reply.usage.input_tokens > 5


@both
def test_a_structured_request_names_its_step(run: Run) -> None:
    with served(replies={"say": '{"word": "fox"}'}) as (chat, server, calls):
        run(chat, STRUCTURED, calls)
    wanted = server.requests[0].body["response_format"]
    assert wanted["json_schema"] == {"name": "say", "strict": True, "schema": SCHEMA}
    assert server.requests[0].step == "say"


def test_a_reply_cut_by_max_tokens_says_so() -> None:
    with served("length") as (chat, _, calls):
        reply = chat.complete(REQUEST, calls.append)
        "".join(chat.stream(REQUEST, calls.append))
    assert reply.finish_reason == "length"
    assert [call.reply["finish_reason"] for call in calls] == ["length", "length"]


def test_half_a_surrogate_pair_is_replaced() -> None:
    with served(replies={"say": "fox \ud83d"}) as (chat, _, calls):
        assert chat.complete(REQUEST, calls.append).text == "fox \ufffd"
    assert calls[0].request_hash


# --- what servers don't understand ---------------------------------------------------------------


@both
def test_a_refused_response_format_becomes_less_and_is_remembered(run: Run) -> None:
    replies = {"say": '{"word": "fox"}'}
    with served(formats=["text"], replies=replies) as (chat, server, calls):
        run(chat, STRUCTURED, calls)
        run(chat, STRUCTURED, calls)
    assert chat.dialect.format == "none"
    kinds = [r.body.get("response_format", {}).get("type") for r in server.requests]
    tried_again = "json_schema"  # with another prompt: was it the format?
    assert kinds == ["json_schema", "json_object", None, tried_again, None]
    assert len(calls) == 2
    assert dict(calls[0].request) == server.requests[2].body
    last = server.requests[4].body["messages"][-1]["content"]
    assert last.startswith("Speak, please.")
    assert json.dumps(SCHEMA) in last
    assert server.requests[4].step == "say"


def test_a_server_with_json_object_gets_that() -> None:
    replies = {"say": '{"word": "fox"}'}
    with served(formats=["json_object", "text"], replies=replies) as (chat, server, _):
        chat.complete(STRUCTURED)
    assert chat.dialect.format == "json_object"
    assert "JSON Schema" in server.requests[1].body["messages"][-1]["content"]


def test_a_server_that_ignores_the_format_gets_less_next_time() -> None:
    with served() as (chat, _, _):
        chat.complete(STRUCTURED)
        assert chat.dialect.format == "json_object"


def test_one_reply_in_prose_does_not_change_a_server_that_knows_the_format() -> None:
    with served("prose:say:2", replies={"say": '{"word": "fox"}'}) as (chat, _, _):
        for _ in range(2):
            chat.complete(STRUCTURED)
        assert chat.dialect.format == "json_schema"


@both
@pytest.mark.parametrize(
    ("refused", "instead"),
    [
        ("max_tokens", "max_completion_tokens"),
        ("temperature", None),
        ("seed", None),
        ("stream_options", None),
    ],
)
def test_a_refused_parameter_is_left_out_and_remembered(
    run: Run, refused: str, instead: str | None
) -> None:
    with served(rejects=[refused], replies={"say": '{"word": "fox"}'}) as (chat, server, calls):
        run(chat, STRUCTURED, calls)
        run(chat, STRUCTURED, calls)
    assert refused not in calls[-1].request
    assert instead is None or calls[-1].request[instead] == 50
    expected = 2 if refused == "stream_options" and run is completed else 4
    assert len(server.requests) == expected
    assert calls[0].request["response_format"]["type"] == "json_schema"


def test_several_refusals_are_learnt_in_one_call() -> None:
    rejects = ["max_tokens", "temperature", "seed"]
    with served(rejects=rejects, formats=["text"], replies={"say": "{}"}) as (chat, server, calls):
        chat.complete(STRUCTURED, calls.append)
        chat.complete(STRUCTURED, calls.append)
    assert len(calls) == 2
    assert set(server.requests[-1].body) == {"model", "messages", "max_completion_tokens"}


def test_a_refusal_that_nothing_cures_is_an_error() -> None:
    with (
        served(rejects=["messages"]) as (chat, server, _),
        pytest.raises(EndpointError, match="HTTP 400"),
    ):
        chat.complete(REQUEST)
    assert len(server.requests) == 2  # another prompt is refused too


@given(st.text(max_size=80))
def test_learning_ends_whatever_a_server_says(said: str) -> None:
    dialect: ServerCapabilities | None = ServerCapabilities()
    for _ in range(12):
        assert dialect is not None
        dialect = dialect.adapt_to_refusal(said, dialect.body(STRUCTURED, "m", stream=True))
        if dialect is None:
            return
    pytest.fail("it goes on for ever")


# --- what goes wrong ----------------------------------------------------------------------------


@both
@pytest.mark.parametrize("kind", ["rate_limit", "server_error", "drop"])
def test_a_passing_fault_is_retried_and_the_call_is_one(run: Run, kind: str) -> None:
    with served(Fault(kind, nth=1)) as (chat, server, calls):  # type: ignore[arg-type]
        assert run(chat, REQUEST, calls).text == STORY
    assert len(server.requests) == 2
    assert len(calls) == 1
    assert "error" not in calls[0].reply


FATAL = {
    "rate_limit": (EndpointError, "HTTP 429.*less often", 2),
    "server_error": (EndpointError, "HTTP 500", 3),  # at the end with another prompt
    "unauthorised": (EndpointError, "refused the API key .*OPENAI_API_KEY", 1),
    "drop": (EndpointError, "dropped the connection", 3),
    "not_json": (EndpointError, "not an OpenAI-compatible.*/v1", 1),
    "empty": (ModelError, "step say is empty", 1),
}


@both
@pytest.mark.parametrize("kind", FATAL)
def test_a_lasting_fault_is_one_sentence_and_one_record(run: Run, kind: str) -> None:
    error, words, attempts = FATAL[kind]
    with served(kind) as (chat, server, calls), pytest.raises(error, match=words) as caught:
        run(chat, REQUEST, calls)
    assert len(server.requests) == attempts
    (call,) = calls
    assert call.reply["error"] == str(caught.value)
    assert dict(call.request) == server.requests[0].body
    for text in (str(caught.value), repr(call)):
        assert "sk-" not in text
        assert "\n" not in text


@both
def test_a_wrong_key_never_shows(run: Run) -> None:
    with (
        served(api_key="sk-another") as (chat, _, calls),
        pytest.raises(EndpointError, match="HTTP 401") as caught,
    ):
        run(chat, REQUEST, calls)
    assert caught.value.exit_code == 5
    assert "sk-" not in f"{caught.value!r} {calls!r}"


def test_an_unknown_model_is_answered_with_those_there_are() -> None:
    with (
        served(models=["fox-large", "fox-small"]) as (chat, _, _),
        pytest.raises(EndpointError, match=r"does not have the model 'm'.*fox-large, fox-small"),
    ):
        chat.complete(REQUEST)


def test_a_wrong_path_is_told_from_a_wrong_model() -> None:
    with (
        ScriptedServer() as server,
        OpenAIChat("m", Endpoint(server.base_url + "/v7")) as chat,
        pytest.raises(EndpointError, match=r"nothing OpenAI-compatible.*ends in /v1"),
    ):
        chat.complete(REQUEST)


@both
def test_a_silent_server_is_given_up(run: Run) -> None:
    with (
        served("hang", timeout=0.1, retries=0) as (chat, _, calls),
        pytest.raises(EndpointError, match=r"sent nothing for 0.1 seconds"),
    ):
        run(chat, REQUEST, calls)
    assert len(calls) == 1


def closed_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:{port}/v1", "can't be reached: Connection refused.*port"),
        ("http://model-server.invalid/v1", "host name .* is not known"),
    ],
)
def test_an_unreachable_server_is_not_waited_for(url: str, words: str) -> None:
    calls: list[Call] = []
    address = url.format(port=closed_port())
    with (
        OpenAIChat("m", Endpoint(address, KEY, retries=50)) as chat,
        pytest.raises(EndpointError, match=words),
    ):
        chat.complete(REQUEST, calls.append)
    assert len(calls) == 1
    assert calls[0].request["model"] == "m"


def test_a_plain_server_behind_https_is_a_tls_failure() -> None:
    with ScriptedServer() as server:
        url = server.base_url.replace("http:", "https:")
        with (
            OpenAIChat("m", Endpoint(url)) as chat,
            pytest.raises(EndpointError, match=r"TLS connection.*https"),
        ):
            chat.complete(REQUEST)


@pytest.mark.parametrize(
    ("kind", "words"),
    [("cut_stream", "broke off: .*dropped the connection"), ("unfinished", "stopped half-way")],
)
def test_a_stream_that_stops_half_way_leaves_its_part_in_the_record(kind: str, words: str) -> None:
    pieces: list[str] = []
    with served(kind) as (chat, _, calls), pytest.raises(ModelError, match=words) as caught:
        pieces.extend(chat.stream(REQUEST, calls.append))
    assert not isinstance(caught.value, EndpointError)
    (call,) = calls
    assert call.reply["error"] == str(caught.value)
    assert call.reply["text"]
    assert STORY.startswith(call.reply["text"])
    assert call.reply["text"] != STORY


@pytest.mark.parametrize("loop", ["and so on ", '{"sentence": "It is so."}\n', "-"])
def test_a_model_that_repeats_itself_for_ever_is_stopped(loop: str) -> None:
    with served(replies={"say": '{"word": "fox"}\n' + loop * 50_000}) as (chat, _, calls):
        with pytest.raises(ModelError, match="m repeated itself in the step say"):
            list(chat.stream(REQUEST, calls.append))
        assert len(calls[0].reply["text"]) < 10_000


def test_rows_that_are_alike_are_no_repetition() -> None:
    rows = "".join(
        f'{{"sentence": "Number {n} is a number.", "citations": []}}\n' for n in range(400)
    )
    with served(replies={"say": rows}) as (chat, _, calls):
        assert streamed(chat, REQUEST, calls).text == rows


def test_a_reply_has_a_limit_that_the_request_can_replace() -> None:
    with (
        ScriptedServer({"say": STORY}) as server,
        OpenAIChat("m", Endpoint(server.base_url), max_tokens=9) as chat,
    ):
        chat.complete(REQUEST)
        chat.complete(STRUCTURED)
    assert [r.body["max_tokens"] for r in server.requests] == [9, 50]


def test_a_reader_who_stops_leaves_a_record() -> None:
    with served() as (chat, _, calls):
        stream = chat.stream(REQUEST, calls.append)
        first = next(stream)
        stream.close()
        assert chat.complete(REQUEST).text == STORY
    assert calls[0].reply["text"] == first
    assert "reader stopped" in calls[0].reply["error"]


REFUSALS = {
    "too long": (400, "The input token count (1200000) exceeds the maximum of 1048576."),
    "too long for its limit": (400, "max_tokens must be at least 1, got -345."),
    "filter": (400, "内容存在风险"),
    "moderation": (403, "Your input was flagged."),
    "body": (413, "Request Entity Too Large"),
    "unprocessable": (422, "Input validation error"),
    "legal": (451, "Unavailable."),
    "server": (500, "slot unavailable"),
}
MARKED = replace(STRUCTURED, messages=[{"role": "user", "content": "MARK: speak."}])


def refuse_marked(server: ScriptedServer, status: int, words: str) -> None:
    accept = server.refusal
    server.refusal = lambda request, fault: (  # type: ignore[method-assign]
        (status, {"message": words})
        if "MARK" in str(request.body["messages"])
        else accept(request, fault)
    )


@both
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refusal_of_one_prompt_is_that_prompts_fault_whatever_its_words(
    run: Run, first: bool, refusal: str
) -> None:
    status, words = REFUSALS[refusal]
    with served(replies={"say": '{"word": "fox"}'}) as (chat, server, calls):
        refuse_marked(server, status, words)
        if not first:
            run(chat, STRUCTURED, calls)
        with pytest.raises(RefusedPromptError, match=f"not this one of the step say.*{status}"):
            run(chat, MARKED, calls)
        assert run(chat, STRUCTURED, calls).text == '{"word": "fox"}'
    assert chat.dialect == ServerCapabilities()
    refused = [call for call in calls if "error" in call.reply]
    assert [call.reply["refused_prompt"] for call in refused] == [True]


def test_a_refusal_beside_a_format_that_the_server_has_not_teaches_the_format_only() -> None:
    with served(formats=["text"], replies={"say": '{"word": "fox"}'}) as (chat, server, _):
        refuse_marked(server, 400, "Content Exists Risk")
        with pytest.raises(RefusedPromptError):
            chat.complete(MARKED)
    assert chat.dialect == ServerCapabilities("none")


def test_a_prompt_that_passes_in_a_lesser_format_only_leaves_the_format_to_others() -> None:
    with served(replies={"say": '{"word": "fox"}'}) as (chat, server, _):
        server.refusal = lambda request, fault: (
            (400, {"message": "No."})
            if "MARK" in str(request.body["messages"]) and "response_format" in request.body
            else None
        )
        assert chat.complete(MARKED).text == '{"word": "fox"}'
    assert chat.dialect == ServerCapabilities()


def test_a_prompt_that_leaves_no_room_for_the_limit_is_sent_without_it() -> None:
    with served(replies={"say": '{"word": "fox"}'}) as (chat, server, calls):
        server.refusal = lambda request, fault: (
            (400, {"message": "Too large."})
            if "MARK" in str(request.body["messages"]) and "max_tokens" in request.body
            else None
        )
        chat.complete(STRUCTURED)
        chat.complete(MARKED, calls.append)
        assert "max_tokens" not in calls[0].request
        assert chat.dialect.limit == "max_tokens"


def test_a_server_that_begins_to_refuse_every_prompt_is_out_of_reach() -> None:
    with served(replies={"say": '{"word": "fox"}'}) as (chat, server, _):
        chat.complete(STRUCTURED)
        server.refusal = lambda request, fault: (403, {"message": "Revoked."})
        errors: list[type[Exception]] = []
        for _ in range(4):
            with pytest.raises(ModelError) as caught:
                chat.complete(STRUCTURED)
            errors.append(caught.type)
    assert errors == [RefusedPromptError] * 3 + [EndpointError]


def test_a_used_up_quota_is_not_retried() -> None:
    with served() as (chat, server, _):
        server.refusal = lambda request, fault: (
            429,
            {"message": "-", "code": "insufficient_quota"},
        )
        with pytest.raises(EndpointError, match="quota"):
            chat.complete(REQUEST)
    assert len(server.requests) == 1


def test_a_wait_beyond_reason_is_an_error() -> None:
    with (
        served(Fault("rate_limit", retry_after=3600)) as (chat, server, _),
        pytest.raises(EndpointError, match="asks to wait 3600 seconds"),
    ):
        chat.complete(REQUEST)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_date_in_retry_after_is_read() -> None:
    seconds = retry_after({"retry-after": "Fri, 01 Jan 2100 00:00:00 GMT"})
    assert seconds is not None
    assert seconds > 0


def test_back_off_grows_to_its_limit() -> None:
    waits = [back_off(attempt) for attempt in range(8)]
    assert waits == sorted(waits)
    assert 0.375 <= waits[0] <= 0.5
    assert 6 <= waits[-1] <= 8


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://x/v1", "http://", "http://[x/v1"])
def test_what_is_no_url_is_wrong_usage(url: str) -> None:
    with pytest.raises(UsageError, match="base URL"):
        Endpoint(url)


@pytest.mark.parametrize("key", ["sk-\u201cquoted\u201d", "sk-a\nb", "sk a"])
def test_what_is_no_key_is_wrong_usage_and_does_not_show(key: str) -> None:
    with pytest.raises(UsageError) as caught:
        Endpoint(api_key=key)
    assert "sk" not in str(caught.value)


def test_credentials_in_the_address_stay_out_of_the_record() -> None:
    endpoint = Endpoint("https://me:secret@host.example:8443/v1?token=secret")
    assert endpoint.url == "https://host.example:8443/v1"
    assert OpenAIChat("m", endpoint).agent.provider == endpoint.url


# --- limits -------------------------------------------------------------------------------------


def test_no_more_calls_at_once_than_allowed() -> None:
    with ScriptedServer(delay=0.03) as server:
        endpoint = Endpoint(server.base_url, limiter=Limiter(concurrency=2))
        with OpenAIChat("m", endpoint) as chat, ThreadPoolExecutor(6) as pool:
            replies = list(pool.map(chat.complete, [REQUEST] * 8))
    assert len(replies) == 8
    assert server.peak == 2


def test_calls_from_many_threads_are_recorded_once_each() -> None:
    calls: list[Call] = []
    with served("server_error:say:3") as (chat, _, _), ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: chat.complete(REQUEST, calls.append), range(12)))
    assert len(calls) == 12


def test_a_window_admits_so_many_requests_in_a_minute() -> None:
    window = Window(requests=2)
    assert not isinstance(window.admit(0.0, 0), float)
    assert not isinstance(window.admit(10.0, 0), float)
    assert window.admit(20.0, 0) == 40.0
    assert not isinstance(window.admit(60.0, 0), float)
    assert window.admit(61.0, 0) == 9.0


def test_a_window_admits_so_many_tokens_in_a_minute() -> None:
    window = Window(tokens=100)
    first = window.admit(0.0, 90)
    assert window.admit(1.0, 20) == 59.0
    assert not isinstance(first, float)
    first.tokens = 10
    assert not isinstance(window.admit(2.0, 20), float)


def test_a_call_beyond_the_whole_limit_goes_alone() -> None:
    window = Window(tokens=100)
    assert not isinstance(window.admit(0.0, 500), float)
    assert window.admit(59.0, 1) == 1.0
    assert not isinstance(window.admit(60.0, 500), float)


@given(st.lists(st.tuples(st.floats(0, 20), st.integers(0, 60)), max_size=60))
def test_no_minute_ever_holds_more_than_the_limits(steps: list[tuple[float, int]]) -> None:
    window, now, admitted = Window(requests=5, tokens=100), 0.0, []
    for wait, tokens in steps:
        now += wait
        if not isinstance(window.admit(now, tokens), float):
            admitted.append((now, tokens))
        within = [t for at, t in admitted if at > now - 60]
        assert len(within) <= 5
        assert sum(within) <= 100


@pytest.mark.parametrize("limits", [(0, None, None), (1, 0, None), (1, None, -1)])
def test_a_limit_of_nothing_is_wrong_usage(limits: tuple[int, int | None, int | None]) -> None:
    with pytest.raises(UsageError, match="must be at least 1"):
        Limiter(*limits)


# --- interruption -------------------------------------------------------------------------------


def interrupted(start: Callable[[], object], ready: Callable[[], bool], stop: Cancellation) -> None:
    """Starts something in a thread, cancels it when it is under way, and expects it to end so."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(start)
        while not ready():
            time.sleep(0.002)
        stop.set()
        with pytest.raises(RunCancelledError):
            running.result(timeout=20)


@pytest.mark.parametrize("kind", ["hang", "rate_limit"])
def test_interruption_ends_a_call_and_a_retry(kind: str) -> None:
    stop = Cancellation()
    calls: list[Call] = []
    fault = Fault(kind, retry_after=100)  # type: ignore[arg-type]
    with ScriptedServer(faults=[fault]) as server:
        endpoint = Endpoint(server.base_url, limiter=Limiter(cancellation=stop), timeout=300)
        with OpenAIChat("m", endpoint) as chat:
            interrupted(
                lambda: chat.complete(REQUEST, calls.append), lambda: bool(server.requests), stop
            )
    assert [call.reply["error"] for call in calls] == ["Interrupted."]


def test_interruption_ends_the_wait_for_a_place() -> None:
    stop = Cancellation()
    limiter = Limiter(concurrency=1, cancellation=stop)
    waiting = threading.Event()

    def wait() -> None:
        waiting.set()
        with limiter.slot():
            pytest.fail("there was no place")

    with limiter.slot():
        interrupted(wait, waiting.is_set, stop)


def test_interruption_ends_the_wait_for_a_window() -> None:
    stop = Cancellation()
    limiter = Limiter(requests_per_minute=1, cancellation=stop)
    waiting = threading.Event()
    with limiter.slot():
        pass

    def wait() -> None:
        waiting.set()
        with limiter.slot():
            pytest.fail("the minute was not over")

    interrupted(wait, waiting.is_set, stop)
    assert RunCancelledError.exit_code == 130


# --- embeddings ---------------------------------------------------------------------------------


@contextmanager
def embedding(*faults: Fault, **options: Any) -> Iterator[Any]:
    with (
        ScriptedServer(faults=faults) as server,
        OpenAIEmbedder(
            "m", Endpoint(server.base_url, KEY, retries=1, first_wait=0.01), **options
        ) as embedder,
    ):
        yield embedder, server


def test_vectors_are_unit_rows_in_the_order_of_the_texts() -> None:
    calls: list[Call] = []
    texts = [f"word{i} shared" for i in range(7)]
    with embedding(batch_size=3) as (embedder, server):
        vectors = embedder.embed(texts, calls.append)
        alone = np.concatenate([embedder.embed([text]) for text in texts])
        assert embedder.dimension == 64
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert np.array_equal(vectors, alone)
    assert [len(call.request["input"]) for call in calls] == [3, 3, 1]
    recorded = [decode_vectors(c.reply["vectors"], c.reply["dimension"]) for c in calls]
    assert np.array_equal(np.concatenate(recorded), vectors)
    assert dict(calls[0].request) == server.requests[0].body
    assert calls[0].usage.input_tokens > 0


def embedded_by(rows: list[dict[str, Any]]) -> Any:
    """Two texts, embedded by a server that answers with these rows."""
    reply = json.dumps({"object": "list", "data": rows, "usage": {"prompt_tokens": "many"}})
    with (
        ScriptedServer({"embeddings": reply}) as server,
        OpenAIEmbedder("m", Endpoint(server.base_url, KEY, retries=0)) as embedder,
    ):
        return embedder.embed(["a", "b"])


def row(place: int | None, *numbers: float) -> dict[str, Any]:
    return {"embedding": list(numbers)} | ({} if place is None else {"index": place})


def test_the_largest_numbers_have_a_unit_vector_too() -> None:
    vectors = embedded_by([row(1, 3e38, 3e38), row(0, 1e-38, 0.0)])
    assert np.allclose(vectors, np.array([[1, 0], [2**-0.5, 2**-0.5]]))


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([row(0, 1.0), row(0, 2.0)], "numbered the vectors wrongly"),
        ([row(0, 1.0), row(7, 2.0)], "numbered the vectors wrongly"),
        ([row(0, 1.0), row(None, 2.0)], "numbered the vectors wrongly"),
        ([row(0, 1.0), row(1, 0.0)], "a vector of zeros"),
        ([row(0, 1.0), row(1, float("inf"))], "not numbers"),
    ],
)
def test_vectors_that_can_not_be_told_apart_are_refused(
    rows: list[dict[str, Any]], problem: str
) -> None:
    with pytest.raises(ModelError, match=problem):
        embedded_by(rows)


def test_no_texts_have_no_vectors_and_empty_texts_have_some() -> None:
    with embedding() as (embedder, _):
        assert embedder.embed([]).shape == (0, 64)
        assert embedder.embed(["", "fox"]).shape == (2, 64)


def test_shorter_vectors_can_be_asked_for() -> None:
    with embedding(dimensions=16) as (embedder, _):
        assert embedder.dimension == 16


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("unauthorised", "refused the API key"),
        ("server_error", "HTTP 500"),
        ("not_json", "not an OpenAI-compatible|0 vectors"),
    ],
)
def test_a_failed_embedding_is_recorded(kind: str, words: str) -> None:
    calls: list[Call] = []
    with (
        embedding(Fault(kind)) as (embedder, _),  # type: ignore[arg-type]
        pytest.raises(ModelError, match=words),
    ):
        embedder.embed(["fox"], calls.append)
    assert len(calls) == 1
    assert "error" in calls[0].reply


def test_a_server_that_changes_its_dimension_is_refused() -> None:
    with embedding() as (embedder, server):
        embedder.embed(["fox"])
        server.dimension = 32
        with pytest.raises(EndpointError, match="from 64 to 32"):
            embedder.embed(["fox"])


def test_importing_the_clients_does_not_import_openai() -> None:
    import subprocess
    import sys

    code = (
        "import sys, tgraph.models.openai, tgraph.models.openai, tgraph.models.reply_cache;"
        "print([m for m in ('openai', 'httpx2', 'numpy', 'json_repair') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_requests_reach_the_server_as_they_are_recorded() -> None:
    seen: list[ServerRequest] = []

    def reply(request: ServerRequest) -> str:
        seen.append(request)
        return "fox"

    with served(replies={"say": reply}) as (chat, _, calls):
        chat.complete(REQUEST, calls.append)
    assert dict(calls[0].request) == seen[0].body
