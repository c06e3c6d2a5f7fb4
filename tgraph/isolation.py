"""Start of tgraph's own processes, and operating system barriers around the processes.

A process starts from its parent's code and nothing else: Python's isolated mode (``-I -S``),
the folder ``/``, and only the environment variables needed by Python and its libraries, hence
no keys. The barriers support the checks inside the process: the kernel refuses operations that
a manipulated library attempts."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
import subprocess
import sys
from pathlib import Path

_SAFE_FOLDER = "/"
_START = (
    "import sys; module = sys.argv[1]; sys.path += sys.argv[2:]; del sys.argv[1:];"
    " from importlib import import_module; import_module(module).main()"
)
_VARIABLES = ("LANG", "LANGUAGE", "LC_", "TZ", "LD_LIBRARY_PATH", "DYLD_", "OMP_", "OPENBLAS_")

_AUDIT_AND_SOCKET = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_LOAD, _JUMP_EQUAL, _JUMP_FROM, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _DENY = 0x7FFF0000, 0x00050000 | 13  # EACCES
_X32 = 0x40000000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER_MODE = 38, 22, 2
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000


def start_process(module: str, stderr: int | None = None) -> subprocess.Popen[bytes]:
    """Start a process running ``main()`` of a tgraph module, connected by pipes.

    The process imports from the same places as the current process, except the working folder,
    with the standard library first. A terminal interrupt reaches only the parent."""
    return subprocess.Popen(  # noqa: S603 - a module of tgraph's own
        [sys.executable, "-I", "-S", "-c", _START, module, *_import_places()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        cwd=_SAFE_FOLDER,
        env={k: value for k, value in os.environ.items() if k.startswith(_VARIABLES)},
        start_new_session=True,
    )


def _import_places() -> list[str]:
    """Return module import places, tgraph's package place first."""
    package_place = str(Path(__file__).resolve().parent.parent)
    working = os.path.realpath(os.curdir)
    places = (place for place in sys.path if Path(place).is_absolute())
    return [
        package_place,
        *(place for place in places if os.path.realpath(place) not in (package_place, working)),
    ]


def limit_memory(most: int) -> None:
    """Limit the process's address space permanently to ``most`` bytes."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))


def limit_time(seconds: float) -> None:
    """Limit the process's CPU time from now, in seconds, even for orphaned processes; each call
    restarts the limit."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    until = int(used.ru_utime + used.ru_stime + seconds) + 2
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    allowed = until if hard == resource.RLIM_INFINITY else min(until, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, hard))


def forbid_writing() -> None:
    """Forbid file writing for the rest of the process; pipes remain usable."""
    sys.dont_write_bytecode = True
    for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        resource.setrlimit(kind, (0, 0))


def forbid_sockets() -> str:
    """Forbid opening sockets for the rest of the process; return the means, empty if
    unsupported."""
    if sys.platform == "linux":
        if _filter_sockets():
            return "filter"
        if _own_network():
            return "namespace"
    return ""


def _filter_sockets() -> bool:
    """By a seccomp filter (seccomp(2)) that denies ``socket``."""
    syscall_numbers = _AUDIT_AND_SOCKET.get(platform.machine())
    if syscall_numbers is None:
        return False
    architecture, socket_call = syscall_numbers
    steps = [
        (_LOAD, 0, 0, 4),
        (_JUMP_EQUAL, 0, 4, architecture),  # another architecture's calls: denied as a whole
        (_LOAD, 0, 0, 0),
        (_JUMP_FROM, 2, 0, _X32),
        (_JUMP_EQUAL, 1, 0, socket_call),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _DENY),
    ]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(steps), ctypes.cast(buffer, ctypes.c_void_p).value)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    return not libc.prctl(_PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0)


def _own_network() -> bool:
    """Isolate the process in a separate network namespace (unshare(2)), where filters aren't
    allowed; return success."""
    libc = ctypes.CDLL(None, use_errno=True)
    return not libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)


def no_more_handles() -> None:
    """Forbid new file handles: a new handle gets the lowest free number, now beyond the limit.

    Opening a file later fails with an error, so all needed files must already be open."""
    lowest = os.dup(2)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, lowest))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))
