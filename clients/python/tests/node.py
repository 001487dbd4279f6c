"""Nodes for the tests. clients_test.go sets the environment variables."""

from __future__ import annotations

import asyncio
import atexit
import os
import socket
import subprocess
import time
import unittest
import uuid
from collections.abc import Awaitable, Callable

from wakebell import aio

PROGRAM = os.environ.get("WAKEBELL_TEST_PROGRAM", "wakebell")
REDIS = os.environ.get("WAKEBELL_TEST_REDIS", "embedded")
TLS = os.environ.get("WAKEBELL_TEST_TLS", "")  # folder with ca.pem, node.pem and node.key
TOKEN = "known-to-both-of-them"
PATIENCE = 30.0

_addresses = os.environ.get("WAKEBELL_TEST_ADDRESSES", "127.0.0.1:7071,127.0.0.1:7072,127.0.0.1:7073").split(",")


class Node:
    """A node that is a process of its own."""

    def __init__(self, *args: str, lease: str = "5s") -> None:
        self.address = _addresses.pop()
        self._args = [PROGRAM, "--redis", REDIS, "node", "--listen", self.address, *args]
        self._args += ["--lease-ttl", lease, "--visibility-timeout", lease, "--retry-initial", "10ms", "--log-level", "warn"]
        self._args += ["--token-file", os.path.join(TLS or ".", "tokens")]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._args)
        host, port = self.address.split(":")
        end = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection((host, int(port))).close()
                return
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait()
        _addresses.append(self.address)


_shared: list[Node] = []


def shared() -> Node:
    """Return the node that most tests use."""
    if not _shared:
        _shared.append(Node())
        atexit.register(_shared[0].stop)
    return _shared[0]


def name() -> str:
    """Return a new name of a topic, queue, gate or schedule."""
    return f"t-{uuid.uuid4()}"


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until the condition holds."""
    end = time.monotonic() + PATIENCE
    while not await holds():
        if time.monotonic() > end:
            raise AssertionError("it did not happen")
        await asyncio.sleep(0.01)


async def command(*words: str) -> bytes:
    """Send a command to Redis. Return the first line of its reply."""
    host, port = REDIS.removeprefix("redis://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"*{len(words)}\r\n".encode() + b"".join(b"$%d\r\n%s\r\n" % (len(w.encode()), w.encode()) for w in words))
    try:
        return await reader.readline()
    finally:
        writer.close()


class Case(unittest.IsolatedAsyncioTestCase):
    """A test with a client of the shared node."""

    async def asyncSetUp(self) -> None:
        self.node = shared()
        self.client = await self.enterAsyncContext(aio.Client(self.node.address, token=TOKEN, timeout=PATIENCE))

    async def is_settled(self, topic: str) -> bool:
        stats = await self.client.stats(topic)
        return stats.total == 0
