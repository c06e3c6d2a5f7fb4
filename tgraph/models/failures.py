"""What went wrong at an endpoint, as one sentence with its remedy and a verdict on retrying.

No sentence ever holds the key: what a server says is quoted only after secrets are removed.
"""

from __future__ import annotations

import email.utils
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tgraph.errors import EndpointError, ModelError

if TYPE_CHECKING:
    import openai

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 507, 520, 521, 522, 523, 524, 529})
REFUSED = frozenset({400, 413, 422})
_QUOTED = 240
_KEYS = re.compile(r"\b(?:sk|pk|key|api)[-_][\w*.-]{6,}|Bearer\s+\S+", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context[_ ](?:length|size|window)|maximum context|too many tokens|prompt is too long"
    r"|exceeds? the (?:available )?context|max_model_len",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content[_ ](?:filter|policy|management)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt.

    ``retry``: ``yes``, ``no``, or ``reached``: only where the server was reached before, because
    it may be starting again. ``wait`` is what the server asked for, in seconds.
    """

    error: ModelError
    retry: str = "no"
    wait: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call went, for messages: the address without credentials, the model, the key."""

    url: str
    model: str
    key: str = ""
    timeout: float = 0.0

    def quote(self, text: str) -> str:
        """What the server said, on one line, without secrets, at most 240 characters."""
        clean = text.replace(self.key, "***") if self.key else text
        clean = " ".join(_KEYS.sub("***", clean).split()).rstrip(".")
        return clean if len(clean) <= _QUOTED else clean[: _QUOTED - 1] + "…"


def explain(error: Exception, place: Place) -> Failure:
    """The failure that an exception of the ``openai`` package (or of its transport) stands for."""
    import openai

    if isinstance(error, openai.APIStatusError):
        return _status(error, place)
    if isinstance(error, openai.APITimeoutError):
        return _timeout(error, place)
    if isinstance(error, openai.APIConnectionError):
        return _connection(error, place)
    if isinstance(error, openai.APIError):
        said = place.quote(error.message)
        return Failure(ModelError(f"{place.url} reported an error: {said}."), "yes")
    return _failure(
        f"{place.url} sent a reply that is not an OpenAI-compatible one.",
        "Check the base URL; for most servers it ends in /v1.",
        "yes" if isinstance(error, ValueError) else "no",
    )


def _failure(sentence: str, remedy: str, retry: str = "no") -> Failure:
    return Failure(EndpointError(sentence, remedy), retry)


# --- the server answered ------------------------------------------------------------------------


def _status(error: openai.APIStatusError, place: Place) -> Failure:
    status, said = error.status_code, place.quote(_words(error))
    if status in (401, 403):
        return Failure(_unauthorised(status, place))
    if status == 404:
        return Failure(_not_found(said, place))
    if status in REFUSED:
        return Failure(_refused(status, said, place))
    if status == 429 and "insufficient_quota" in f"{error.code} {error.type}":
        return _failure(f"The quota of the key at {place.url} is used up.", "Check its billing.")
    sentence = (
        f"{place.url} answered HTTP {status} to the model {place.model}: {said or 'no reason'}."
    )
    retry = "yes" if status in RETRIED else "no"
    remedy = "Ask less often (requests per minute), or try again later."
    return Failure(
        EndpointError(sentence, remedy if status == 429 else "Try again later."),
        retry,
        retry_after(error.response.headers),
    )


def _words(error: Exception) -> str:
    body: Any = getattr(error, "body", None)
    if isinstance(body, Mapping):
        for name in ("message", "error", "detail"):
            if isinstance(body.get(name), str):
                return str(body[name])
    return body if isinstance(body, str) else str(error)


def _unauthorised(status: int, place: Place) -> EndpointError:
    if status == 403:
        return EndpointError(
            f"{place.url} denies access to the model {place.model} (HTTP 403).",
            "Check that the key may use this model from here.",
        )
    if place.key:
        return EndpointError(
            f"{place.url} refused the API key (HTTP 401).",
            "Set OPENAI_API_KEY to a key that this server knows, or correct the base URL.",
        )
    return EndpointError(f"{place.url} asks for an API key (HTTP 401).", "Set OPENAI_API_KEY.")


def _not_found(said: str, place: Place) -> EndpointError:
    if "model" in said.lower():
        return EndpointError(f"{place.url} does not have the model {place.model!r}.")
    return EndpointError(
        f"There is nothing OpenAI-compatible at {place.url} (HTTP 404).",
        "Check the base URL; for most servers it ends in /v1.",
    )


def _refused(status: int, said: str, place: Place) -> ModelError:
    if _TOO_LONG.search(said) or status == 413:
        told = f" ({said})" if said else ""
        return ModelError(
            f"The prompt is longer than the model {place.model} can read{told}.",
            "Use smaller chunks or a smaller context budget.",
        )
    if _FILTERED.search(said):
        return ModelError(f"{place.url} refused the prompt by its content policy: {said}.")
    return EndpointError(f"{place.url} refused the request (HTTP {status}): {said}.")


def refusal(error: Exception) -> str | None:
    """What a server said against the form of a request (HTTP 400, 422), None for other failures.

    A refusal of the prompt's length or content is none: asking in another form doesn't cure it.
    """
    if getattr(error, "status_code", None) not in REFUSED:
        return None
    said = f"{getattr(error, 'param', None) or ''} {_words(error)}"
    return None if _TOO_LONG.search(said) or _FILTERED.search(said) else said


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that ``Retry-After`` (RFC 9110, 10.2.3) or ``retry-after-ms`` asks for."""
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / divisor
        except ValueError:
            parsed = email.utils.parsedate_tz(value)
            seconds = email.utils.mktime_tz(parsed) - time.time() if parsed else -1.0
        if 0 <= seconds < float("inf"):
            return seconds
    return None


# --- it did not ---------------------------------------------------------------------------------


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _timeout(error: openai.APITimeoutError, place: Place) -> Failure:
    import httpx2

    if any(isinstance(c, httpx2.ConnectTimeout) for c in _causes(error)):
        return _failure(
            f"{place.url} can't be reached: no answer to the connection.",
            "Check the base URL, the network and the proxy settings.",
            "reached",
        )
    return _failure(
        f"{place.url} sent nothing for {place.timeout:g} seconds.",
        "Raise the timeout, or check whether the server is overloaded.",
        "yes",
    )


def _connection(error: openai.APIConnectionError, place: Place) -> Failure:
    causes = list(_causes(error))
    if any(isinstance(c, ssl.SSLError) for c in causes):
        return _failure(
            f"The TLS connection to {place.url} failed: {place.quote(str(causes[-1]))}.",
            "Check that the server really speaks https, and its certificate (SSL_CERT_FILE).",
        )
    if any(isinstance(c, socket.gaierror) for c in causes):
        sentence = f"The host name of {place.url} is not known."
        return _failure(sentence, "Check the base URL and the network.", "reached")
    return _transport(causes, place)


def _transport(causes: list[BaseException], place: Place) -> Failure:
    import httpx2

    if any(isinstance(c, httpx2.ConnectError) for c in causes):
        words = place.quote(re.sub(r"^\[Errno -?\d+\] ", "", str(causes[-1])))
        return _failure(
            f"{place.url} can't be reached: {words or 'no connection'}.",
            "Check that the server runs and that the base URL and port are right.",
            "reached",
        )
    if any(isinstance(c, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError) for c in causes):
        return _failure(f"A request to {place.url} can't be made.", "Check base URL and key.")
    remedy = "Check the server's log, or try again later."
    return _failure(f"{place.url} dropped the connection.", remedy, "yes")
