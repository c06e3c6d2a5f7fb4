"""A process that runs foreign SPARQL: no sockets, no more memory than it is given.

These are barriers of the operating system, behind the tokenizer's: whatever the engine is talked
into, the kernel refuses. Linux: a seccomp filter (seccomp(2)) that denies ``socket``, or a network
namespace of its own (unshare(2)) where filters aren't allowed. Elsewhere: no new file handles.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
import sys

_AUDIT_AND_SOCKET = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_LOAD, _JUMP_EQUAL, _JUMP_FROM, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _DENY = 0x7FFF0000, 0x00050000 | 13  # EACCES
_X32 = 0x40000000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER_MODE = 38, 22, 2
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def limit(memory: int, seconds: int) -> None:
    """Let the process have so many bytes of address space, and so many seconds of CPU time even if
    nobody is left to stop it."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def forbid_sockets() -> str:
    """Make opening a socket impossible for the rest of the process; says by which means."""
    if sys.platform == "linux":
        if _filter_sockets():
            return "filter"
        if _own_network():
            return "namespace"
    _no_more_handles()
    return "handles"


def _filter_sockets() -> bool:
    known = _AUDIT_AND_SOCKET.get(platform.machine())
    if known is None:
        return False
    architecture, socket_call = known
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
    libc = ctypes.CDLL(None, use_errno=True)
    return not libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)


def _no_more_handles() -> None:
    """Allow no new handle: one gets the lowest free number, and that is beyond the limit from now.

    A large store may want to open more of its files; its query then fails with an error.
    """
    lowest = os.dup(2)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, lowest))
