"""Joins, and waiting for the end of timers."""

from __future__ import annotations

import asyncio

from wakebell import Draft, End, Lease, Part, Reject, errors
from wakebell.types import Join, PartEnd

from .node import Case, command, name


class Joins(Case):
    async def test_a_timer_is_due_after_its_parts(self) -> None:
        work, reports = name(), name()
        seen: asyncio.Queue[dict[str, End | None]] = asyncio.Queue()
        release = asyncio.Event()

        async def handle(lease: Lease) -> None:
            if lease.id == "bad":
                raise Reject("no such account")
            if lease.id == "last":
                await release.wait()

        async def report(lease: Lease) -> None:
            await seen.put({p.id: p.end async for p in self.client.parts_of(lease)})

        await self.client.subscribe(work, handle, name="s")
        await self.client.subscribe(reports, report, name="s")
        ids = ["good", "bad", "last"]
        drafts = [Draft(topic=work, id=id) for id in ids]
        drafts.append(Draft(topic=reports, id="r", delay=3600, after=[(work, id) for id in [*ids, "none"]]))
        await self.client.schedule_batch(drafts)
        ending = await self.client.wait(work, "bad", timeout=30)
        self.assertEqual((ending.end, ending.reason), (End.DEAD, "no such account"))
        with self.assertRaises(errors.DeadlineError):
            await self.client.wait(work, "last", timeout=0.05)
        self.assertTrue(seen.empty())
        release.set()
        self.assertEqual((await self.client.wait(reports, "r", timeout=30)).end, End.DONE)
        self.assertEqual(await seen.get(), {"good": End.DONE, "bad": End.DEAD, "last": End.DONE, "none": End.MISSING})
        listed: list[PartEnd] = [p async for p in self.client.parts(reports, "r", limit=2)]
        listed += [p async for p in self.client.parts(reports, "r", after=listed[-1].cursor)]
        self.assertEqual({p.id for p in listed}, {*ids, "none"})
        self.assertEqual([p.reason for p in listed if p.id == "bad"], ["no such account"])
        self.assertEqual([p async for p in self.client.parts(reports, "r", running=True)], [])
        nothing = await self.client.report(work, "good")
        self.assertEqual((nothing.progress, nothing.result), (None, None))

    async def test_errors_of_wait_and_report_have_the_codes_of_the_node(self) -> None:
        topic = name()
        await command("SET", f"timers_results:{topic}:a", "of another program")
        for asks in (self.client.report(topic, "a"), self.client.wait(topic, "a", timeout=30)):
            with self.assertRaises(errors.WrongTypeError):
                await asks

    async def test_open_joins_are_extended_closed_and_cancelled(self) -> None:
        work, reports = name(), name()
        for _ in range(2):  # a request that is sent again
            await self.client.schedule(reports, id="r", delay=3600, open=True, idempotency_key="k")
        await self.client.schedule(work, id="a", delay=3600, part_of=[Part(reports, "r")])
        await self.client.schedule(work, id="b", delay=3600)
        await self.client.add_parts(reports, "r", (work, "b"), (work, "none"))
        self.assertEqual(await self.client.join(reports, "r"), Join(True, 3, 0, 0, 0, 1))
        await self.client.close_join(reports, "r")
        with self.assertRaises(errors.InvalidError):
            await self.client.add_parts(reports, "r", (work, "c"))
        self.assertEqual(await self.client.cancel_join(reports, "r"), 2)
        self.assertEqual(await self.client.join(reports, "r"), Join(False, 3, 0, 0, 2, 1))
        with self.assertRaises(errors.NotFoundError):
            await self.client.get(work, "a")
        for call in (self.client.join(work, "none"), self.client.close_join(work, "none"), self.client.cancel_join(work, "none")):
            with self.assertRaises(errors.NotFoundError):
                await call

    async def test_joins_that_cannot_be_are_refused(self) -> None:
        topic = name()
        with self.assertRaisesRegex(errors.InvalidError, "it needs In or At"):
            await self.client.schedule(topic, id="a", after=[(topic, "b")])
        with self.assertRaisesRegex(errors.InvalidError, "wait for itself"):
            await self.client.schedule(topic, id="a", delay=1, after=[(topic, "a")])
        with self.assertRaisesRegex(errors.InvalidError, "at most 10,000"):
            await self.client.schedule(topic, id="a", delay=1, after=[(topic, "b")] * 10_001)
        many = [Draft(topic=topic, id=str(n), delay=3600) for n in range(1000)]
        with self.assertRaisesRegex(errors.InvalidError, "more than one request"):
            await self.client.schedule_batch([*many, Draft(topic=topic, delay=3600, after=[(topic, "0")])])
        self.assertEqual((await self.client.stats(topic)).total, 0)
