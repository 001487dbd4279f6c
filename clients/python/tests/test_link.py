"""Connections: credentials, TLS, nodes that do not answer, and the blocking client."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import wakebell
from wakebell import Lease, aio, errors
from wakebell._link import MAX_FLIGHT
from wakebell._pb import gateway_pb2

from .node import PATIENCE, TLS, TOKEN, Case, Node, name, shared


class Links(Case):
    async def test_a_wrong_token_is_refused_at_once(self) -> None:
        async with aio.Client(self.node.address, token="not-" + TOKEN) as client:
            with self.assertRaises(errors.UnauthenticatedError):
                await client.stats(name())

    async def test_a_token_is_read_for_each_connection(self) -> None:
        async with aio.Client(self.node.address, token=lambda: TOKEN) as client:
            await client.stats(name())

    async def test_a_node_that_does_not_answer_is_unavailable(self) -> None:
        async with aio.Client("127.0.0.1:9", dead_link=0.3) as client:
            with self.assertRaisesRegex(errors.UnavailableError, "127.0.0.1:9"):
                await client.stats(name())
        async with aio.Client("127.0.0.1:9") as client:
            with self.assertRaises(errors.DeadlineError):
                await client.stats(name(), timeout=0.05)

    async def test_requests_fail_at_once_after_the_dead_link(self) -> None:
        async with aio.Client("127.0.0.1:9", dead_link=0.3) as client, asyncio.timeout(PATIENCE):
            for _ in range(3):
                with self.assertRaises(errors.UnavailableError):
                    await client.stats(name(), timeout=100 * PATIENCE)

    async def test_a_request_waits_no_longer_than_its_timeout_for_others(self) -> None:
        answered = asyncio.Event()

        async def ask(kind: str, request: Any, deadline: float | None) -> Any:
            await answered.wait()
            return gateway_pb2.GetTopicStatsResponse()

        await self.client.stats(name())
        with mock.patch.object(self.client._link, "_ask", ask):
            others = [asyncio.create_task(self.client.stats(name())) for _ in range(MAX_FLIGHT)]
            await asyncio.sleep(0)
            with self.assertRaises(errors.DeadlineError):
                async with asyncio.timeout(PATIENCE):
                    await self.client.stats(name(), timeout=0.05)
            answered.set()
            await asyncio.gather(*others)
            await self.client.stats(name())

    async def test_the_return_of_the_link_is_logged(self) -> None:
        node = Node()
        self.addCleanup(lambda: node.stop())
        async with aio.Client(node.address, token=TOKEN, timeout=PATIENCE, dead_link=PATIENCE) as client:
            with self.assertNoLogs("wakebell", "WARNING"):
                await client.stats(name())
            with self.assertLogs("wakebell", "WARNING") as logs:
                node.kill()
                node.start()
                await client.stats(name())
                await client.stats(name())
        self.assertIn("no link", logs.output[0])
        self.assertRegex(logs.output[-1], "up again")

    async def test_a_closed_client_refuses_requests(self) -> None:
        client = aio.Client(self.node.address, token=TOKEN)
        await client.stats(name())
        turn = await client.acquire(name())
        await client.close()
        await client.close()
        self.assertIsNotNone(turn.lost)
        with self.assertRaises(errors.ClosedError):
            await client.stats(name())

    async def test_a_token_is_not_sent_over_the_network_in_the_clear(self) -> None:
        with self.assertRaisesRegex(errors.InvalidError, "tls"):
            aio.Client("node.example.com:7070", token=TOKEN)
        aio.Client("node.example.com:7070", token=TOKEN, insecure=True)
        for address in ("localhost", ":7070", "localhost:http", "localhost:70000"):
            with self.assertRaisesRegex(errors.InvalidError, "host:port"):
                aio.Client(address)

    async def test_the_certificate_of_the_node_is_verified(self) -> None:
        node = Node("--tls-cert", os.path.join(TLS, "node.pem"), "--tls-key", os.path.join(TLS, "node.key"))
        self.addCleanup(node.stop)
        authority = Path(TLS, "ca.pem").read_bytes()
        tls = wakebell.TLS(ca=authority, server_name="node.test")
        async with aio.Client(node.address, token=TOKEN, tls=tls, timeout=PATIENCE, dead_link=PATIENCE) as client:
            await client.stats(name())
        async with aio.Client(node.address, token=TOKEN, tls=True, dead_link=0.5) as client:
            with self.assertRaises(errors.UnavailableError):
                await client.stats(name())


class Errors(unittest.TestCase):
    def test_each_code_of_the_node_has_an_exception(self) -> None:
        codes = {c.removeprefix("CODE_") for c in gateway_pb2.Code.keys()} - {"UNSPECIFIED"}  # noqa: SIM118
        self.assertEqual(codes, set(errors.BY_CODE))
        self.assertIsInstance(errors.from_code("NEWER", "text"), errors.InternalError)


class Blocking(unittest.TestCase):
    def test_the_blocking_client_does_what_the_other_does(self) -> None:
        topic, gate = name(), name()
        handled: list[str] = []
        done = threading.Event()

        def handle(lease: Lease) -> None:
            handled.append(lease.text())
            if lease.attempt == 2:
                done.set()
            else:
                raise ValueError("once")

        with wakebell.Client(shared().address, token=TOKEN, timeout=PATIENCE) as client:
            client.schedule(topic, "x", id="a", delay=3600)
            self.assertEqual([t.id for t in client.list_timers(topic)], ["a"])
            with self.assertLogs("wakebell", "WARNING"), client.subscribe(topic, handle, name="s") as subscription:
                client.run_now(topic, "a")
                self.assertTrue(done.wait(PATIENCE))
            subscription.wait()
            with client.turn(gate) as turn:
                turn.guard("ledger")
                turn.check()
                with self.assertRaises(errors.GateHeldError):
                    client.turn(gate, wait=False)
            with self.assertRaises(errors.NotFoundError):
                client.get(topic, "b")
        self.assertEqual(handled, ["x", "x"])
        with self.assertRaises(errors.ClosedError):
            client.stats(topic)


class Readme(unittest.TestCase):
    def test_the_node_of_the_readme_leaves_the_shell_and_has_the_token_of_the_programs(self) -> None:
        text = (Path(__file__).parent.parent / "README.md").read_text()
        self.assertRegex(text, r"(?m)^    wakebell .* node .* &$")
        self.assertRegex(text, r"(?m)^    export WAKEBELL_TOKEN=")

    def test_the_programs_of_the_readme_run(self) -> None:
        text = (Path(__file__).parent.parent / "README.md").read_text()
        programs = re.findall(r"```python\n(.*?)```\n(?:\nIt prints:\n\n((?:    [^\n]*\n)+))?", text, re.DOTALL)
        self.assertEqual(len(programs), 2)
        for program, output in programs:
            program = program.replace("127.0.0.1:7070", shared().address)
            environment = {**os.environ, "WAKEBELL_TOKEN": TOKEN}
            done = subprocess.run(
                [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=PATIENCE
            )
            self.assertEqual(done.stdout, re.sub("^    ", "", output, flags=re.MULTILINE), done.stderr)
