"""Forks: what a child process may not use."""

from __future__ import annotations

import os

from .errors import ForkedError

_used = False  # this process, or one that it was forked from, has used gRPC
_forked = False  # this process was forked from one that had used gRPC


def use() -> None:
    """Note that this process uses gRPC. Raise ForkedError if it cannot."""
    global _used
    check()
    _used = True


def check() -> None:
    """Raise ForkedError if gRPC cannot work: its threads did not survive the fork."""
    if _forked:
        raise ForkedError(
            "this process was forked from one that had used a client, and gRPC does not survive a fork: "
            "make the first client after the fork, or start processes with spawn"
        )


def _in_child() -> None:
    global _forked
    _forked = _used


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
