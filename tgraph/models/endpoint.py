"""One OpenAI-compatible server: its client, shared by all threads, with limits and retries.

The ``openai`` package sends; retrying is done here and not by it, so that a wait ends at once when
the run is cancelled and every attempt keeps to the rate limits.
"""

from __future__ import annotations

import logging
import socket
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from tgraph.errors import EndpointError, ModelError, UsageError
from tgraph.models.concurrency import Limiter, RunCancelledError, Slot
from tgraph.models.failures import CallDestination, Failure, explain_failure

if TYPE_CHECKING:
    import httpx2
    import openai

    from tgraph.models.reply_limits import ReplyLimits

T = TypeVar("T")
log = logging.getLogger(__name__)

OPENAI_URL = "https://api.openai.com/v1"
FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class Endpoint:
    """A server's address, key, time limits and connections. Thread-safe; close it when done.

    ``timeout`` is how long the server may be silent and ``connect_timeout`` how long connecting may
    take, in seconds. ``retries`` follow HTTP 429 and 5xx, time-outs and dropped connections, with
    back-off from ``first_wait`` to 8 s, or as ``Retry-After`` says (up to ``longest_pause``
    seconds). A server that was never reached is not tried again. Redirects are not followed, and a
    reply has the limits of ``tgraph.models.reply_limits``. Raises ``UsageError`` for a
    malformed URL or key.
    """

    def __init__(
        self,
        base_url: str = OPENAI_URL,
        api_key: str = "",
        *,
        timeout: float = 120.0,
        connect_timeout: float = 5.0,
        retries: int = 5,
        first_wait: float = FIRST_WAIT,
        longest_pause: float = 120.0,
        limiter: Limiter | None = None,
    ) -> None:
        self._base_url = base_url.strip().rstrip("/")
        self.url = _public_url(self._base_url)
        self._key = _checked_key(api_key)
        self._timeouts = (timeout, connect_timeout)
        self._retries = retries
        self._first_wait = first_wait
        self._longest_pause = longest_pause
        self.limiter = limiter or Limiter()
        self._client: openai.OpenAI | None = None
        self._lock = threading.Lock()
        self._reached = False
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._connecting = threading.Lock()
        self.limiter.cancellation.add(self._interrupt_reads)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Pickle the endpoint without its key: another process uses its own key
        (``endpoint_here``)."""
        options = {
            "timeout": self._timeouts[0],
            "connect_timeout": self._timeouts[1],
            "retries": self._retries,
            "first_wait": self._first_wait,
            "longest_pause": self._longest_pause,
            "limiter": self.limiter,
        }
        return endpoint_here, (self._base_url, options)

    @property
    def client(self) -> openai.OpenAI:
        """The endpoint's single client; first use imports ``openai`` (half a second)."""
        with self._lock:
            if self._client is None:
                self._client = self._create_client()
            return self._client

    def _create_client(self) -> openai.OpenAI:
        import httpx2
        import openai

        from tgraph.models.reply_limits import ReplyLimits

        read, connect = self._timeouts
        limits = ReplyLimits(read)

        def watch_request(request: httpx2.Request) -> None:
            request.extensions["trace"] = partial(self._watch_connection, limits)
            limits.start_reply(request)

        http = openai.DefaultHttpxClient(
            trust_env=urlsplit(self._base_url).hostname not in _LOCAL,  # no proxy to this machine
            event_hooks={"request": [watch_request], "response": [limits.bound_reply]},
            follow_redirects=False,  # which would carry prompts to whoever is named there
            headers={"Accept-Encoding": "gzip"},
        )
        return openai.OpenAI(
            base_url=self._base_url,
            api_key=self._key or "none",  # local servers want none, the client wants one
            timeout=httpx2.Timeout(read, connect=connect),
            max_retries=0,
            http_client=http,
        )

    def _watch_connection(self, limits: ReplyLimits, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            limits.bound_reads(info["return_value"])
            sock = info["return_value"].get_extra_info("socket")
            if isinstance(sock, socket.socket):
                with self._connecting:
                    self._sockets.add(sock)
                if self.limiter.cancellation.is_set():  # it was connecting meanwhile
                    _shut_socket(sock)

    def _interrupt_reads(self) -> None:
        """Interrupt running reads in other threads."""
        with self._connecting:
            connected = list(self._sockets)
        for sock in connected:
            _shut_socket(sock)

    def close(self) -> None:
        self.limiter.cancellation.remove(self._interrupt_reads)
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    # --- attempts -------------------------------------------------------------------------------

    @contextmanager
    def open(
        self,
        send: Callable[[openai.OpenAI], T],
        model: str,
        tokens: int = 0,
        judge: Callable[[openai.OpenAI, Exception, Failure], ModelError] | None = None,
    ) -> Iterator[tuple[T, Slot]]:
        """Yield the result of ``send``, after retries, with the call's place held meanwhile.

        After the last attempt failed, ``judge`` returns the error to raise. Raises
        ``EndpointError``, ``ModelError`` or ``RunCancelledError``."""
        attempt = 0
        while True:
            with self.limiter.slot(tokens) as slot:
                try:
                    result = send(self.client)
                except Exception as error:
                    failure = self.failure(error, model)
                    if not self._is_retried(failure, attempt):
                        final = judge(self.client, error, failure) if judge else failure.error
                        raise self._with_models(final) from None
                    wait = self._retry_wait(failure, attempt)
                else:
                    self._reached = True
                    yield result, slot
                    return
            self.limiter.cancellation.sleep(wait)
            attempt += 1

    def failure(self, error: Exception, model: str) -> Failure:
        """Return the failure corresponding to an exception.

        Raises ``RunCancelledError`` if the run was cancelled: cancellation is then the cause."""
        if isinstance(error, RunCancelledError):
            raise error
        self.limiter.cancellation.check()
        return explain_failure(
            error, CallDestination(self.url, model, self._key, self._timeouts[0])
        )

    def _is_retried(self, failure: Failure, attempt: int) -> bool:
        """Return whether another attempt follows a failed attempt, counted from 0."""
        again = failure.retry == "yes" or (failure.retry == "reached" and self._reached)
        again = again or (failure.retry == "once" and attempt == 0)
        return again and attempt < self._retries

    def _retry_wait(self, failure: Failure, attempt: int) -> float:
        """Return seconds until the next attempt; raise an error if the server asks for more."""
        if failure.wait is not None and failure.wait > self._longest_pause:
            raise EndpointError(
                f"{self.url} asks to wait {failure.wait:.0f} seconds.",
                "Try again after the waiting time.",
            ) from None
        if failure.wait is not None:
            self.limiter.pause(failure.wait)
        wait = failure.wait if failure.wait is not None else back_off(attempt, self._first_wait)
        log.info("%s Retry %d of %d in %.1f s.", failure.error, attempt + 1, self._retries, wait)
        return wait

    def _with_models(self, error: ModelError) -> ModelError:
        """Return an unknown-model error extended by the server's model list; other errors
        unchanged."""
        if "does not have the model" not in error.message:
            return error
        try:
            names = [m.id for m in self.client.models.list().data]
        except Exception:  # the list is a help, not the matter
            return EndpointError(error.message, "Check the model's name.")
        model_list = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        return EndpointError(error.message, f"It has: {model_list or 'none'}.")


_here: dict[str, Endpoint] = {}
_making = threading.Lock()


def endpoint_here(base_url: str, options: Mapping[str, Any]) -> Endpoint:
    """Return the current process's endpoint for an address, created once with the key from the
    environment.

    Used for work sent by another process."""
    with _making:
        if base_url not in _here:
            _here[base_url] = Endpoint(base_url, _key_for(base_url), **options)
        return _here[base_url]


def _key_for(base_url: str) -> str:
    from tgraph.settings import load_settings

    settings = load_settings(None)
    embedding_url = settings.embedding.base_url
    key = (
        settings.embedding.api_key
        if embedding_url and embedding_url.rstrip("/") == base_url
        else None
    )
    key = key or settings.chat.api_key
    return key.get_secret_value() if key else ""


def _shut_socket(sock: socket.socket) -> None:
    with suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def back_off(attempt: int, first: float = FIRST_WAIT) -> float:
    """Return seconds before retry ``attempt`` (from 0), doubling from ``first`` to 8.

    A thread-dependent reduction of up to a quarter keeps threads from retrying in step."""
    share = (threading.get_ident() % 97) / 97
    return float(min(first * 2**attempt, LONGEST_WAIT)) * (1 - share / 4)


def _public_url(url: str) -> str:
    """The address without user, password, query and fragment, fit for a record."""
    wrong = UsageError(
        "The base URL of the model server is not a URL.", "It looks like http://HOST:PORT/v1."
    )
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise wrong from None
    if not host or parts.scheme not in ("http", "https"):
        raise wrong
    host = f"[{host}]" if ":" in host else host
    netloc = f"{host}:{port}" if port else host
    return urlunsplit((parts.scheme, netloc, parts.path, "", ""))


def _checked_key(key: str) -> str:
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(
            "The API key has characters that no key has.", "Check OPENAI_API_KEY for stray text."
        )
    return key
