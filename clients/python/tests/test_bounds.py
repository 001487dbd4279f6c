"""Requests that the node would refuse by ending the link."""

from __future__ import annotations

import asyncio
from typing import Any

from wakebell import Draft, Lease, Message, aio, errors
from wakebell._link import Link
from wakebell._pb import endings_pb2, remote_pb2
from wakebell._requests import MAX_VALUES, values_of

from .node import PATIENCE, TOKEN, Case, name


class Bounds(Case):
    async def test_a_request_that_is_too_large_is_refused_and_the_link_stays(self) -> None:
        with self.assertNoLogs("wakebell", "WARNING"):
            with self.assertRaisesRegex(errors.InvalidError, "max_message"):
                await self.client.schedule(name(), bytes(9 << 20), delay=3600)
            await self.client.stats(name())
        with self.assertRaisesRegex(errors.InvalidError, "max_message"):
            aio.Client(self.node.address, max_message=1)

    async def test_batches_are_divided_by_their_bytes_and_values(self) -> None:
        topic, queue = name(), name()
        dense = {f"h{n}": "" for n in range(80)}
        with self.assertNoLogs("wakebell", "WARNING"):
            stored = await self.client.schedule_batch([Draft(topic=topic, headers=dense, delay=3600) for _ in range(1000)])
            self.assertEqual(len(stored), 1000)
            async with aio.Client(self.node.address, token=TOKEN, timeout=PATIENCE, max_message=64 << 10) as client:
                await client.schedule_batch([Draft(topic=topic, body=bytes(9000), delay=3600) for _ in range(20)])
                await client.publish_batch(queue, [Message(bytes(9000)) for _ in range(20)])
        self.assertEqual((await self.client.stats(topic)).total, 1020)

    async def test_a_result_that_is_far_too_large_makes_a_dead_letter(self) -> None:
        topic, attempts = name(), []

        async def handle(lease: Lease) -> None:
            attempts.append(lease.attempt)
            lease.set_result(bytes(9 << 20))

        await self.client.schedule(topic)
        with self.assertNoLogs("wakebell", "WARNING"):
            subscription = await self.client.subscribe(topic, handle, name="s")
            async with asyncio.timeout(PATIENCE):
                while not (await self.client.stats(topic)).dead:
                    await asyncio.sleep(0.01)
            await subscription.stop()
        self.assertEqual(attempts, [1])

    async def test_a_frame_of_many_requests_has_few_enough_values(self) -> None:
        link: Any = Link(lambda: None, "", lambda: "", 1.0, 8 << 20)
        request = endings_pb2.AddPartsRequest(topic="t", id="x")
        for n in range(5000):
            request.parts.add(topic="t", id=str(n))
        link._out = [remote_pb2.Command(add_parts=request) for _ in range(20)]
        sent = 0
        while (frame := link._take()) is not None:
            sent += len(frame.commands)
            self.assertLessEqual(values_of(frame), MAX_VALUES)
        self.assertEqual(sent, 20)
