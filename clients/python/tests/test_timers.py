"""Scheduling, inspecting and controlling timers."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from wakebell import Debounce, Draft, Outcome, Policy, Presence, State, errors

from .node import Case, name


class Timers(Case):
    async def test_a_timer_is_stored_as_it_was_scheduled(self) -> None:
        topic = name()
        at = datetime.now(timezone.utc) + timedelta(hours=1)
        done = await self.client.schedule(
            topic, {"n": 42, "s": "ä"}, id="a", at=at, headers={"x": "y"}, correlation_id="c"
        )
        self.assertEqual((done.id, done.outcome, done.found), ("a", Outcome.CREATED, None))
        self.assertEqual(done.due, at)
        timer = await self.client.get(topic, "a")
        self.assertEqual((timer.topic, timer.state, timer.attempts), (topic, State.PENDING, 0))
        self.assertEqual((timer.body, timer.content_type), ('{"n":42,"s":"ä"}'.encode(), "application/json"))
        self.assertEqual(timer.value(), {"n": 42, "s": "ä"})
        self.assertEqual((timer.headers, timer.correlation_id, timer.activation), ({"x": "y"}, "c", at))

    async def test_a_timer_has_a_limit_after_which_it_expires(self) -> None:
        topic = name()
        limits: list[float | timedelta] = [1.5, timedelta(seconds=1.5)]
        for limit in limits:
            await self.client.schedule(topic, id="a", delay=3600, headers={"x": "y"}, expire_after=limit)
            self.assertEqual((await self.client.get(topic, "a")).headers, {"x": "y", "wakebell-expire-after": "1500000us"})
        limits = [0, timedelta(days=366)]
        for limit in limits:
            with self.assertRaisesRegex(errors.InvalidError, "expire_after"):
                await self.client.schedule(topic, expire_after=limit)

    async def test_a_timer_has_a_key(self) -> None:
        topic = name()
        await self.client.schedule(topic, id="a", delay=3600, key="ä")
        await self.client.schedule_batch([Draft(topic=topic, id="b", delay=3600, key=b"\xff")])
        self.assertEqual((await self.client.get(topic, "a")).key, "ä".encode())
        listed = {t.id: t.key async for t in self.client.list_timers(topic)}
        self.assertEqual(listed, {"a": "ä".encode(), "b": b"\xff"})
        self.assertEqual((await self.client.stats(topic)).parked, 0)

    async def test_bodies_have_the_content_types_of_the_other_languages(self) -> None:
        topic = name()
        for body, content_type in ((b"\x00", ""), ("text", "text/plain"), ([1, None], "application/json")):
            done = await self.client.schedule(topic, body, delay=3600)
            self.assertRegex(done.id, "^[0-9A-Za-z]{22}$")
            timer = await self.client.get(topic, done.id)
            self.assertEqual((timer.value(), timer.content_type), (body, content_type))
        done = await self.client.schedule(topic, b"\x01", delay=3600, content_type="application/x-protobuf")
        self.assertEqual((await self.client.get(topic, done.id)).content_type, "application/x-protobuf")

    async def test_an_existing_timer_is_replaced_or_kept(self) -> None:
        topic = name()
        first = await self.client.schedule(topic, "1", id="a", delay=timedelta(hours=2))
        kept = await self.client.schedule(topic, "2", id="a", delay=3600, if_exists=Policy.KEEP)
        self.assertEqual((kept.outcome, kept.due, kept.found), (Outcome.KEPT_PENDING, first.due, first.due))
        replaced = await self.client.schedule(topic, "3", id="a", delay=3600)
        self.assertEqual(replaced.outcome, Outcome.REPLACED)
        self.assertEqual((await self.client.get(topic, "a")).text(), "3")
        moved = await self.client.schedule(topic, "4", id="b", debounce=Debounce(3600, limit=7200))
        self.assertEqual(moved.outcome, Outcome.CREATED)
        await self.client.schedule(topic, id="once", once=3600)

    async def test_a_batch_is_answered_in_its_order(self) -> None:
        topics = [name(), name()]
        drafts = [Draft(topic=topics[n % 2], body=n, id=str(n), delay=3600 + n) for n in range(1500)]
        done = await self.client.schedule_batch(drafts)
        self.assertEqual([d.id for d in done], [str(n) for n in range(1500)])
        self.assertEqual((await self.client.stats(topics[0])).pending, 750)
        self.assertEqual(await self.client.schedule_batch([]), [])

    async def test_a_listing_continues_after_a_cursor(self) -> None:
        topic = name()
        await self.client.schedule_batch([Draft(topic=topic, id=str(n), delay=3600 + n) for n in range(250)])
        first = [t async for t in self.client.list_timers(topic, limit=130)]
        rest = [t async for t in self.client.list_timers(topic, after=first[-1].cursor)]
        self.assertEqual([t.id for t in first + rest], [str(n) for n in range(250)])
        soon = self.client.list_timers(topic, due_before=datetime.now(timezone.utc) + timedelta(seconds=3550))
        self.assertEqual([t.id async for t in soon], [])
        self.assertEqual([t.id async for t in self.client.list_timers(topic, running=True)], [])
        self.assertEqual([t.id async for t in self.client.list_timers(topic, limit=0)], [])

    async def test_timers_are_moved_and_cancelled(self) -> None:
        topic = name()
        await self.client.schedule(topic, "x", id="a", delay=3600)
        at = datetime.now(timezone.utc) + timedelta(days=2)
        moved = await self.client.reschedule(topic, "a", at=at)
        self.assertEqual((moved.due, moved.outcome), (at, Outcome.MOVED))
        self.assertEqual(await self.client.run_now(topic, "a"), Presence.PENDING)
        self.assertEqual((await self.client.stats(topic)).due, 1)
        self.assertEqual(await self.client.cancel(topic, "a", "b"), [Presence.PENDING, Presence.ABSENT])
        with self.assertRaises(errors.NotFoundError):
            await self.client.reschedule(topic, "a", delay=1)

    async def test_a_repeated_request_with_a_key_is_not_carried_out_again(self) -> None:
        topic = name()
        first = await self.client.schedule(topic, "x", delay=3600, idempotency_key="order-42")
        again = await self.client.schedule(topic, "x", delay=3600, idempotency_key="order-42")
        self.assertEqual(again, first)
        with self.assertRaises(errors.ConflictError):
            await self.client.schedule(topic, "y", delay=3600, idempotency_key="order-42")
        drafts = [Draft(topic=topic, delay=3600), Draft(topic=topic, id="x", delay=3600)]
        batch = await self.client.schedule_batch(drafts, idempotency_key="batch")
        self.assertEqual(await self.client.schedule_batch(drafts, idempotency_key="batch"), batch)
        self.assertEqual(await self.client.cancel(topic, "x", idempotency_key="cancel"), [Presence.PENDING])
        self.assertEqual(await self.client.cancel(topic, "x", idempotency_key="cancel"), [Presence.PENDING])

    async def test_invalid_arguments_name_what_is_invalid(self) -> None:
        topic = name()
        with self.assertRaisesRegex(errors.InvalidError, "time zone"):
            await self.client.schedule(topic, at=datetime(2030, 1, 1))
        with self.assertRaisesRegex(errors.InvalidError, "exclude"):
            await self.client.schedule(topic, at=datetime.now(timezone.utc), delay=1)
        with self.assertRaisesRegex(errors.InvalidError, "debounce without an id"):
            await self.client.schedule(topic, debounce=Debounce(1), idempotency_key="k")
        with self.assertRaisesRegex(errors.InvalidError, "once without an id"):
            await self.client.schedule_batch([Draft(topic=topic, once=1)])
        with self.assertRaisesRegex(errors.InvalidError, "JSON"):
            await self.client.schedule(topic, object())
        with self.assertRaisesRegex(errors.InvalidError, "topic"):
            await self.client.schedule("")
        with self.assertRaisesRegex(errors.InvalidError, "10,000 years"):
            await self.client.schedule(topic, delay=float("inf"))
        with self.assertRaises(errors.InvalidError):
            await self.client.reschedule(topic, "a")
