"""Evidence package verification in a separate process: bounded memory and time, no network, no
local settings, and isolated crashes.

The returned JSON is trusted as little as the package itself."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tgraph.errors import StoreError, TgraphError, UsageError, VerificationError
from tgraph.extensions.evidence.crates.plain import build_value, to_json_types
from tgraph.extensions.evidence.crates.verify import PackageVerification, check_package
from tgraph.isolation import forbid_sockets, limit_memory, limit_time, start_process
from tgraph.record.signing import PublicKey, load_public_key

SECONDS, MEMORY = 1800.0, 8 << 30


def verify_package(file: str | Path, public_key: str | Path | None = None) -> PackageVerification:
    """Verify and replay an evidence package from its file alone, without graph, network or
    model key.

    Raise ``UsageError`` if the file is missing or ``public_key`` is unreadable, ``StoreError``
    if the file is not a tgraph package, ``VerificationError`` if verification did not finish."""
    key = load_public_key(Path(public_key)).raw.hex() if public_key is not None else None
    job = json.dumps({"file": str(Path(file).absolute()), "key": key}).encode()
    process = start_process("tgraph.extensions.evidence.crates.verify_worker", subprocess.DEVNULL)
    try:
        out, _ = process.communicate(job)
    finally:
        process.kill()
        process.wait()
    try:
        reply = json.loads(out)
        if "error" in reply:
            kind = UsageError if reply["usage"] else StoreError
            raise kind(str(reply["error"]), str(reply["remedy"]))
        checked: PackageVerification = build_value(PackageVerification, reply["found"])
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
    sys.stdout.buffer.write(json.dumps(_run_job(job["file"], job["key"])).encode())
    sys.stdout.buffer.flush()


def _run_job(file: str, key: str | None) -> dict[str, object]:
    try:
        verification = check_package(Path(file), PublicKey(bytes.fromhex(key)) if key else None)
    except TgraphError as error:
        usage = isinstance(error, UsageError)
        return {"error": error.message, "remedy": error.remedy, "usage": usage}
    return {"found": to_json_types(verification)}
