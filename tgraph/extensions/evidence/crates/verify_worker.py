"""The check of an evidence package in a process of its own: with bounded memory and time, no
network, none of this machine's settings, and nothing that a crash of it could harm.

What comes back is JSON, as little trusted as the package.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tgraph.errors import StoreError, TgraphError, UsageError, VerificationError
from tgraph.extensions.evidence.crates.plain import made, plain
from tgraph.extensions.evidence.crates.verify import PackageVerification, check_package
from tgraph.isolation import forbid_sockets, limit_memory, limit_time, start
from tgraph.record.signing import PublicKey, load_public_key

SECONDS, MEMORY = 1800.0, 8 << 30


def verify_package(file: str | Path, public_key: str | Path | None = None) -> PackageVerification:
    """Check an evidence package, and replay it: from the file alone, without a graph, a network or
    a key of a model.

    ``UsageError`` where there is no such file or the ``public_key`` can't be read, ``StoreError``
    where the file is no package of tgraph's, ``VerificationError`` where the check of it did not
    come to an end.
    """
    key = load_public_key(Path(public_key)).raw.hex() if public_key is not None else None
    job = json.dumps({"file": str(Path(file).absolute()), "key": key}).encode()
    process = start("tgraph.extensions.evidence.crates.verify_worker", subprocess.DEVNULL)
    try:
        out, _ = process.communicate(job)
    finally:
        process.kill()
        process.wait()
    try:
        found = json.loads(out)
        if "error" in found:
            kind = UsageError if found["usage"] else StoreError
            raise kind(str(found["error"]), str(found["remedy"]))
        checked: PackageVerification = made(PackageVerification, found["found"])
    except (ValueError, KeyError, TypeError) as error:
        raise VerificationError(
            f"{file} could not be checked: reading it ended the process that did, or took too much"
            " memory or time."
        ) from error
    return replace(checked, file=str(file))


def main() -> None:
    """The process: a job as JSON on standard input, the result on standard output."""
    limit_memory(MEMORY)
    limit_time(SECONDS)
    job = json.loads(sys.stdin.buffer.read())
    forbid_sockets()
    sys.stdout.buffer.write(json.dumps(_done(job["file"], job["key"])).encode())
    sys.stdout.buffer.flush()


def _done(file: str, key: str | None) -> dict[str, object]:
    try:
        found = check_package(Path(file), PublicKey(bytes.fromhex(key)) if key else None)
    except TgraphError as error:
        usage = isinstance(error, UsageError)
        return {"error": error.message, "remedy": error.remedy, "usage": usage}
    return {"found": plain(found)}
