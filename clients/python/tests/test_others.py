"""Queues, gates and recurring schedules."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta, timezone
from typing import Any
from unittest import mock

from wakebell import Celery, Cron, Crontab, Every, Lease, Message, Misfire, Overlap, Queue, Recurring, RRule, aio, errors
from wakebell._link import PUBLISH_AGAIN, LinkBroken

from .node import PATIENCE, TOKEN, Case, name


class Queues(Case):
    async def test_a_message_with_a_key_is_published_once(self) -> None:
        queue = name()
        first = await self.client.publish(queue, {"n": 1}, key="k")
        again = await self.client.publish(queue, {"n": 2}, key="k")
        self.assertEqual((first.fresh, again.fresh, again.id), (True, False, first.id))

    async def test_handlers_receive_headers_and_the_span_of_the_sender(self) -> None:
        queue, traceparent = name(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        received: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()

        async def handle(lease: Lease) -> None:
            received.set_result(lease)

        async with aio.Client(self.node.address, token=TOKEN, trace=lambda: {"traceparent": traceparent}) as client:
            await client.publish_batch(queue, [Message("x", headers={"a": "b"})])
            await client.subscribe(Queue(queue), handle, name="s")
            lease = await received
        self.assertEqual(lease.headers, {"traceparent": traceparent, "a": "b"})
        self.assertEqual(lease.trace, {})  # this node does not trace

    async def test_a_full_queue_reports_what_was_published(self) -> None:
        queue = Queue(name(), cap=3, window=timedelta(minutes=1))
        with self.assertRaises(errors.QueueFullError) as full:
            await self.client.publish_batch(queue, [Message(str(n)) for n in range(5)])
        self.assertEqual([m.fresh for m in full.exception.published], [True] * 3)
        dropping = Queue(queue.name, cap=3, drop_oldest=True)
        self.assertTrue((await self.client.publish(dropping, "x")).fresh)


    async def test_a_publication_is_sent_again_while_the_node_remembers_it(self) -> None:
        began = time.monotonic()
        deadlines: list[float] = []

        async def ask(kind: str, request: Any, deadline: float | None) -> Any:
            deadlines.append(deadline or 0.0)
            raise (LinkBroken(), LinkBroken(began), LinkBroken(began + 10), errors.DeadlineError(""))[len(deadlines) - 1]

        with mock.patch.object(self.client._link, "ask", ask), self.assertRaises(errors.DeadlineError):
            await self.client.publish(name(), "x", timeout=300)
        self.assertGreaterEqual(deadlines[1], began + 300)
        self.assertEqual(deadlines[2:], [began + PUBLISH_AGAIN] * 2)


class Gates(Case):
    async def test_a_turn_without_a_limit_waits_for_a_node_that_starts(self) -> None:
        refusals: list[errors.WakebellError] = [errors.OverloadedError(""), errors.DrainingError(""), errors.DrainingError("")]

        async def refuse(kind: str, request: Any, deadline: float | None) -> Any:
            raise refusals.pop()

        with mock.patch.object(self.client._link, "ask", refuse), self.assertRaises(errors.OverloadedError):
            await self.client.acquire(name())
        self.assertEqual(refusals, [])

    async def test_turns_are_granted_in_order_with_growing_fences(self) -> None:
        gate = name()
        order: list[int] = []
        fences: list[int] = []

        async def take(n: int) -> None:
            async with self.client.turn(gate) as turn:
                order.append(n)
                fences.append(turn.fence)

        async with self.client.turn(gate) as first:
            tasks = []
            for n in range(5):
                tasks.append(asyncio.create_task(take(n)))
                await asyncio.sleep(0)
            with self.assertRaises(errors.GateHeldError):
                await self.client.acquire(gate, wait=False)
            with self.assertRaises(errors.DeadlineError):
                await self.client.acquire(gate, timeout=0.05)
        await asyncio.gather(*tasks)
        self.assertEqual(order, list(range(5)))
        self.assertEqual([first.fence, *fences], sorted({first.fence, *fences}))

    async def test_a_second_release_does_nothing(self) -> None:
        gate = name()
        turn = await self.client.acquire(gate)
        await turn.release()
        await turn.release()
        async with self.client.turn(gate, timeout=PATIENCE):
            pass

    async def test_the_guard_refuses_an_earlier_turn(self) -> None:
        gate = name()
        async with self.client.turn(gate) as first:
            await first.guard("ledger")
        async with self.client.turn(gate) as second:
            await second.guard("ledger")
        with self.assertRaises(errors.FenceStaleError):
            await self.client.guard(gate, "ledger", first.fence)

    async def test_an_error_in_the_block_releases_the_turn(self) -> None:
        gate = name()
        with self.assertRaises(ValueError):
            async with self.client.turn(gate):
                raise ValueError("of the block")
        await (await self.client.acquire(gate, wait=False)).release()

    async def test_a_cancelled_wait_leaves_the_queue(self) -> None:
        gate = name()
        async with self.client.turn(gate):
            waiting = asyncio.create_task(self.client.acquire(gate))
            await asyncio.sleep(0.1)
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiting
        async with self.client.turn(gate, timeout=PATIENCE):
            pass


class RecurringSchedules(Case):
    async def test_a_schedule_is_stored_previewed_run_and_deleted(self) -> None:
        prefix, topic = name(), name()
        start = datetime.now(timezone.utc) + timedelta(days=1)
        await self.client.put_recurring(
            Recurring(
                name=prefix + "a", topic=topic, rule=Cron("30 2 * * *"), body={"n": 1}, zone="Europe/Berlin",
                skip_gaps=True, jitter=1.5, start=start, until=start + timedelta(days=400), max_runs=10,
                misfire=Misfire.ALL, misfire_limit=5, overlap=Overlap.SKIP, headers={"x": "y"},
            ),
            Recurring(name=prefix + "b", topic=topic, rule=Every(timedelta(hours=1), relative=True)),
            Recurring(name=prefix + "c", topic=topic, rule=Crontab(minute="*/5")),
            Recurring(name=prefix + "d", topic=topic, rule=RRule("FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0")),
        )  # fmt: skip
        listed = [s.name async for s in self.client.list_recurring() if s.name.startswith(prefix)]
        self.assertEqual(listed, [prefix + s for s in "abcd"])
        state = await self.client.get_recurring(prefix + "a")
        self.assertEqual((state.topic, state.runs, state.paused, state.fault), (topic, 0, False, ""))
        instants = await self.client.preview_recurring(prefix + "c", 3)
        self.assertEqual([b - a for a, b in zip(instants, instants[1:])], [timedelta(minutes=5)] * 2)
        run = await self.client.run_recurring(prefix + "a", idempotency_key=prefix)
        self.assertEqual(await self.client.run_recurring(prefix + "a", idempotency_key=prefix), run)
        self.assertEqual((await self.client.stats(topic)).total, 1)
        await self.client.enable_recurring(prefix + "a", False)
        self.assertTrue((await self.client.get_recurring(prefix + "a")).paused)
        for suffix in "abcd":
            await self.client.delete_recurring(prefix + suffix)
        with self.assertRaises(errors.NoScheduleError):
            await self.client.get_recurring(prefix + "a")

    async def test_a_celery_task_needs_a_queue_that_is_open_to_peers(self) -> None:
        task = Recurring(name=name(), topic="tasks.add", rule=Every(3600), celery=Celery(args=[1, 2]))
        with self.assertRaises(errors.WakebellError):
            await self.client.put_recurring(task)
