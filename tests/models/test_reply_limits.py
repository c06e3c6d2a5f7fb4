"""What a model server's reply may cost, over real sockets."""

from __future__ import annotations

import gzip
import io
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.support.memory import peak_memory
from tgraph.errors import EndpointError, ModelError
from tgraph.model import Prompt
from tgraph.models import reply_limits
from tgraph.models.base import ChatRequest
from tgraph.models.endpoint import Endpoint
from tgraph.models.openai import OpenAIChat

REQUEST = ChatRequest(
    Prompt("say", "Say it.", "0" * 64), [{"role": "user", "content": "A secret prompt."}]
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
BODY = b'{"choices":[{"message":{"content":"%s"},"finish_reason":"stop"}]}'
Answer = Callable[[socket.socket, threading.Event], None]


@contextmanager
def answering(answer: Answer) -> Iterator[tuple[str, list[bytes]]]:
    """A server that takes requests and answers each with raw bytes; its address and requests."""
    stop, requests = threading.Event(), list[bytes]()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while not stop.is_set():
                with suppress(OSError):
                    connection, _ = listener.accept()
                    with connection:
                        requests.append(connection.recv(1 << 16))
                        answer(connection, stop)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", requests
        finally:
            stop.set()
            with suppress(OSError):
                socket.create_connection(listener.getsockname()).close()
            thread.join()


def fail(address: str, timeout: float = 20.0) -> ModelError:
    with (
        OpenAIChat("m", Endpoint(address, "sk-secret-key", retries=0, timeout=timeout)) as chat,
        pytest.raises(ModelError) as caught,
    ):
        chat.complete(REQUEST)
    return caught.value


def drip(head: bytes) -> Answer:
    def answer(connection: socket.socket, stop: threading.Event) -> None:
        with suppress(OSError):
            connection.sendall(head)
            while not stop.wait(0.02):
                connection.sendall(b"x")

    return answer


def send(data: bytes) -> Answer:
    def answer(connection: socket.socket, stop: threading.Event) -> None:
        with suppress(OSError):
            connection.sendall(data)

    return answer


@pytest.mark.parametrize(
    "head", [HEAD + b"Content-Length: 1000000\r\n\r\n", HEAD + b"X-Long: "], ids=["body", "head"]
)
def test_a_reply_that_never_ends_is_left(head: bytes) -> None:
    with answering(drip(head)) as (address, _):
        error = fail(address, timeout=0.1)
    assert "took more than 1 seconds for a reply, the limit" in str(error)
    assert "chat.timeout" in error.remedy


def packed_reply(text: bytes) -> bytes:
    packed = gzip.compress(BODY % text, 1)
    length = b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    return HEAD + length + packed


def test_a_packed_reply_is_read() -> None:
    with (
        answering(send(packed_reply(b"Ships."))) as (address, _),
        OpenAIChat("m", Endpoint(address, retries=0)) as chat,
    ):
        assert chat.complete(REQUEST).text == "Ships."


def complete_bomb(address: str) -> None:
    error = fail(address)
    assert f"sent a reply of more than {reply_limits.MOST_BYTES // 1_000_000} MB" in str(error)
    assert isinstance(error, EndpointError)


@pytest.mark.slow
def test_a_packed_reply_of_gigabytes_costs_little_memory() -> None:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as file:
        for _ in range(1_000):
            file.write(b"a" * 1_000_000)
    data = HEAD + b"Content-Encoding: gzip\r\n\r\n" + out.getvalue()
    with answering(send(data)) as (address, _):
        assert peak_memory(complete_bomb, address) < 400 << 20


def test_a_reply_of_nothing_but_brackets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_limits, "MOST_BRACKETS", 100)
    data = HEAD + b"\r\n[" + b"[]," * 200 + b"[]]"
    with answering(send(data)) as (address, _):
        assert "more than 100 brackets, the limit" in str(fail(address))


def test_a_redirect_takes_no_prompt_and_no_key_elsewhere() -> None:
    with answering(send(packed_reply(b"Here."))) as (elsewhere, requests):
        head = f"HTTP/1.1 307 Elsewhere\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n"
        with answering(send(head.encode())) as (address, _):
            error = fail(address)
        assert requests == []
    assert "redirects to http://127.0.0.1, and no prompt is sent there" in str(error)
