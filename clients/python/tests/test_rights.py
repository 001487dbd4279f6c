"""Subscriptions whose rights change."""

from __future__ import annotations

import os
import tempfile
import unittest

from wakebell import Lease, aio, errors

from .node import PATIENCE, TOKEN, Node, eventually, name


class Rights(unittest.IsolatedAsyncioTestCase):
    async def test_an_idle_subscription_returns_with_its_right(self) -> None:
        topic, other = name(), name()
        folder = self.enterContext(tempfile.TemporaryDirectory())
        rights = os.path.join(folder, "rights")

        def write(actions: str) -> None:
            with open(rights + ".new", "w") as file:
                file.write(f"tests {actions} topic:{topic}\ntests handle topic:{other}\n")
            os.rename(rights + ".new", rights)

        write("schedule,read,handle")
        node = Node("--rights", rights)
        self.addCleanup(node.stop)
        handled: list[str] = []

        async def handle(lease: Lease) -> None:
            handled.append(lease.id)

        async with aio.Client(node.address, token=TOKEN, timeout=PATIENCE) as client:
            await client.subscribe(topic, handle, name="idle")
            with self.assertLogs("wakebell", "INFO") as logs:
                write("schedule,read")

                async def has_lost_it() -> bool:
                    return any("has lost its right" in line for line in logs.output)

                async def has_it_again() -> bool:
                    return any("has its right again" in line for line in logs.output)

                await eventually(has_lost_it)
                with self.assertRaises(errors.ForbiddenError):
                    await client.subscribe(topic, handle, name="new")
                await client.schedule(topic, "x", id="waits")
                self.assertEqual(handled, [])
                write("schedule,read,handle")
                await eventually(has_it_again)

            async def is_handled() -> bool:
                return handled == ["waits"]

            await eventually(is_handled)
