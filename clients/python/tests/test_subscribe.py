"""Subscriptions: verdicts, leases that end, and stops."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

from google.protobuf import duration_pb2
from wakebell import Draft, Lease, Message, Outcome, Presence, Queue, Reject, Retry, State, aio, errors
from wakebell._pb import remote_pb2, wakebell_pb2
from wakebell._subscriber import Subscription

from .node import PATIENCE, TOKEN, Case, Node, eventually, name


class Subscriptions(Case):
    async def test_what_the_handler_raises_settles_the_timer(self) -> None:
        topic = name()
        attempts: dict[str, int] = {}
        reasons: list[str] = []

        async def handle(lease: Lease) -> None:
            attempts[lease.id] = lease.attempt
            if lease.id == "reject":
                raise Reject("never")
            if lease.attempt == 1 and lease.id == "delay":
                raise Retry(0.01, "not yet")
            if lease.attempt == 1 and lease.id == "raise":
                raise ValueError("broken")
            if lease.id == "raise":
                reasons.append((await self.client.get(topic, lease.id)).last_error)

        with self.assertLogs("wakebell", "WARNING"):
            await self.client.subscribe(topic, handle, name="s", credits=10)
            await self.client.schedule_batch([Draft(topic=topic, id=i) for i in ("ack", "reject", "delay", "raise")])
            await eventually(lambda: self.is_settled(topic))
        self.assertEqual(attempts, {"ack": 1, "reject": 1, "delay": 2, "raise": 2})
        self.assertEqual(reasons, ["broken"])
        self.assertEqual((await self.client.stats(topic)).dead, 1)

    async def test_no_more_handlers_run_than_there_are_credits(self) -> None:
        topic = name()
        running = peak = 0

        async def handle(lease: Lease) -> None:
            nonlocal running, peak
            running += 1
            peak = max(peak, running)
            await asyncio.sleep(0.001)
            running -= 1

        await self.client.subscribe(topic, handle, name="s", credits=3)
        await self.client.schedule_batch([Draft(topic=topic) for _ in range(200)])
        await eventually(lambda: self.is_settled(topic))
        self.assertLessEqual(peak, 3)

    async def test_a_cancelled_timer_cancels_its_handler(self) -> None:
        topic = name()
        began: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        ended = asyncio.Event()

        async def handle(lease: Lease) -> None:
            began.set_result(lease)
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        await self.client.subscribe(topic, handle, name="s")
        await self.client.schedule(topic, "x", id="a")
        lease = await began
        self.assertIsNone(lease.lost)
        self.assertEqual(await self.client.cancel(topic, "a"), [Presence.RUNNING])
        await asyncio.wait_for(ended.wait(), PATIENCE)
        self.assertIsInstance(lease.lost, errors.LeaseCancelledError)

    async def test_a_thread_sees_that_its_lease_is_lost(self) -> None:
        topic = name()
        began, result = threading.Event(), []

        def handle(lease: Lease) -> None:
            began.set()
            result.append((lease.wait_lost(PATIENCE), type(lease.lost)))

        await self.client.subscribe(topic, handle, name="s")
        await self.client.schedule(topic, "x", id="a")
        await asyncio.to_thread(began.wait, PATIENCE)
        superseding = await self.client.schedule(topic, "y", id="a", delay=3600)
        self.assertEqual(superseding.outcome, Outcome.SUPERSEDED)

        async def returned() -> bool:
            return bool(result)

        await eventually(returned)
        self.assertTrue(result[0][0])
        self.assertTrue(issubclass(result[0][1], errors.LeaseLostError))

    async def test_a_long_handler_keeps_its_lease_and_its_turn(self) -> None:
        topic, gate = name(), name()
        attempts: list[int] = []

        async def handle(lease: Lease) -> None:
            attempts.append(lease.attempt)
            async with client.turn(gate):
                await asyncio.sleep(6)  # longer than the lease of each

        async with aio.Client(self.node.address, token=TOKEN, turn_ttl=5) as client:
            await client.subscribe(topic, handle, name="s")
            await client.schedule(topic, "x", id="a")
            await eventually(lambda: self.is_settled(topic))
        self.assertEqual(attempts, [1])

    async def test_a_stop_lets_running_handlers_finish_and_accepts_no_more(self) -> None:
        topic = name()
        began, finish = asyncio.Semaphore(0), asyncio.Event()
        handled: list[str] = []

        async def handle(lease: Lease) -> None:
            began.release()
            await finish.wait()
            handled.append(lease.id)

        subscription = await self.client.subscribe(topic, handle, name="s", credits=2)
        await self.client.schedule_batch([Draft(topic=topic, id=str(n)) for n in range(20)])
        await began.acquire()
        await began.acquire()
        stopping = asyncio.create_task(subscription.stop(timeout=PATIENCE))
        await asyncio.sleep(0)
        finish.set()
        await stopping
        await subscription.wait()
        self.assertEqual(len(handled), 2)

        async def the_rest_is_released() -> bool:
            stats = await self.client.stats(topic)
            return (stats.total, stats.due, stats.retrying) == (18, 18, 0)

        await eventually(the_rest_is_released)

    async def test_a_client_that_is_closed_while_a_subscription_starts_ends_it(self) -> None:
        other = aio.Client(self.node.address, token=TOKEN)
        await other.stats(name())  # the link is up
        starting = asyncio.create_task(other.subscribe(name(), lambda lease: None, name="s"))
        await asyncio.sleep(0)  # it has asked
        await other.close()
        try:
            await (await starting).wait()
        except errors.ClosedError:
            pass  # the client was closed before the answer
        self.assertNotIn("wakebell-subscriber", [task.get_name() for task in asyncio.all_tasks()])

    async def test_a_stop_cancels_handlers_that_take_too_long(self) -> None:
        topic = name()
        began = asyncio.Event()

        async def handle(lease: Lease) -> None:
            began.set()
            await asyncio.Event().wait()

        subscription = await self.client.subscribe(topic, handle, name="s")
        await self.client.schedule(topic, "x", id="a")
        await began.wait()
        await subscription.stop(timeout=0.01)

        async def is_released() -> bool:
            timer = await self.client.get(topic, "a")
            return (timer.state, timer.attempts) == (State.PENDING, 0)

        await eventually(is_released)

    async def test_a_lease_that_is_lost_while_its_handler_goes_on_is_not_released(self) -> None:
        held = [wakebell_pb2.Lease(id=str(n), delivery=n, ttl=duration_pb2.Duration(seconds=3600)) for n in (1, 2)]
        asked: list[Any] = []
        released: list[int] = []
        finish = asyncio.Event()
        self.addCleanup(finish.set)

        async def ask(kind: str, request: Any, deadline: float) -> remote_pb2.SubscribeResponse:
            asked.append(request)
            return remote_pb2.SubscribeResponse(held=held if len(asked) > 1 else [])

        def send(kind: str, m: Any) -> bool:
            released.extend(v.release.delivery for v in m.verdicts if v.HasField("release"))
            return True

        async def handle(lease: Lease) -> None:
            while not finish.is_set():
                try:
                    await finish.wait()
                except asyncio.CancelledError:
                    pass

        async def is_released() -> bool:
            return bool(released)

        link: Any = SimpleNamespace(subscribers={}, up=True, start=lambda: None, ask=ask, send=send, max_message=8 << 20)
        s = Subscription(link, name(), None, handle, "s", 2)
        await s.start()
        s.leases(remote_pb2.Leases(leases=held[:1]))
        await asyncio.sleep(0)
        s.ended(remote_pb2.LeasesEnded(ended=[wakebell_pb2.LeaseEnded(id="1", delivery=1)]))
        s.opened()
        await eventually(is_released)
        self.assertEqual(released, [2])
        await s.stop(0)
        self.assertEqual(list(asked[-1].running), [1])

    async def test_a_stop_leaves_the_lease_of_a_thread_that_goes_on_to_expire(self) -> None:
        topic = name()
        began, finish = threading.Semaphore(0), threading.Event()
        lost: list[bool] = []

        def handle(lease: Lease) -> None:
            began.release()
            lost.append(lease.wait_lost(PATIENCE))
            if lease.id == "hangs":
                finish.wait(PATIENCE)

        node = await asyncio.to_thread(Node, lease="1m")
        self.addCleanup(node.stop)
        self.addCleanup(finish.set)
        client = await self.enterAsyncContext(aio.Client(node.address, token=TOKEN))
        subscription = await client.subscribe(topic, handle, name="s", credits=3)
        await client.schedule_batch([Draft(topic=topic, id=i) for i in ("hangs", "returns")])
        for _ in range(2):
            await asyncio.to_thread(began.acquire, True, PATIENCE)
        await subscription.stop(timeout=0.01)
        self.assertEqual(lost, [True, True])
        with self.assertRaises(errors.NotFoundError):  # it was settled
            await client.get(topic, "returns")
        timer = await client.get(topic, "hangs")
        self.assertEqual((timer.state, timer.attempts), (State.RUNNING, 1))

    async def test_a_new_subscription_replaces_the_former_of_its_name(self) -> None:
        topic = name()
        began, finish = asyncio.Event(), asyncio.Event()
        taken: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def hang(lease: Lease) -> None:
            began.set()
            await finish.wait()

        async def take(lease: Lease) -> None:
            taken.set_result(lease.id)

        await self.client.subscribe(topic, hang, name="s")
        await self.client.schedule(topic, "x", id="first")
        await began.wait()
        async with aio.Client(self.node.address, token=TOKEN) as other:
            await other.subscribe(topic, take, name="s")
            await self.client.schedule(topic, "x", id="second")
            self.assertEqual(await taken, "second")  # the handler of the first goes on
            self.assertEqual((await self.client.get(topic, "first")).attempts, 1)
            finish.set()

            async def is_settled() -> bool:
                try:
                    await self.client.get(topic, "first")
                except errors.NotFoundError:
                    return True
                return False

            await eventually(is_settled)

    async def test_messages_of_a_queue_are_handled(self) -> None:
        queue = Queue(name())
        bodies: list[object] = []

        async def handle(lease: Lease) -> None:
            if lease.attempt == 1 and lease.json() == {"n": 0}:
                raise Retry(0.01)
            bodies.append(lease.json())

        await self.client.subscribe(queue, handle, name="s")
        await self.client.publish_batch(queue, [Message({"n": n}) for n in range(3)])

        async def all_are_handled() -> bool:
            return len(bodies) == 3

        await eventually(all_are_handled)
        self.assertCountEqual(bodies, [{"n": n} for n in range(3)])
        with self.assertRaises(errors.ConflictError):
            await self.client.subscribe(queue.name, handle, name="other")

    async def test_a_subscription_that_cannot_be_is_refused(self) -> None:
        async def handle(lease: Lease) -> None:
            pass

        topic = name()
        with self.assertRaises(errors.InvalidError):
            await self.client.subscribe(topic, handle, name="")
        with self.assertRaises(errors.InvalidError):
            await self.client.subscribe(topic, handle, name="s", credits=0)
        await self.client.subscribe(topic, handle, name="s")
        with self.assertRaisesRegex(errors.InvalidError, "already subscribed"):
            await self.client.subscribe(topic, handle, name="s")

    async def test_handlers_keep_checkpoints_progress_and_results(self) -> None:
        for threads in (False, True):
            topic = name()
            bodies: list[object] = []
            refused: list[BaseException] = []

            async def handle(lease: Lease) -> None:
                bodies.append(lease.json())
                await lease.progress(0.5, "half")
                lease.set_result("x" * 5000)
                if lease.attempt == 1:
                    await lease.checkpoint({"page": 2})
                    try:
                        await lease.progress(2)
                    except errors.InvalidError as error:
                        refused.append(error)
                    raise Retry(0)

            def handle_in_thread(lease: Lease) -> None:
                bodies.append(lease.json())
                lease.wait_progress(0.5, "half")
                lease.set_result("x" * 5000)
                if lease.attempt == 1:
                    lease.wait_checkpoint({"page": 2})
                    try:
                        lease.wait_progress(2)
                    except errors.InvalidError as error:
                        refused.append(error)
                    raise Retry(0)

            await self.client.subscribe(topic, handle_in_thread if threads else handle, name="s")
            await self.client.schedule(topic, {"page": 1}, id="a")
            await eventually(lambda: self.is_settled(topic))
            self.assertEqual(bodies, [{"page": 1}, {"page": 2}])
            self.assertEqual(len(refused), 1)
            self.assertEqual((await self.client.stats(topic)).dead, 1, "its result is too large")

    async def test_nothing_is_kept_of_a_lost_lease(self) -> None:
        topic = name()
        began: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()

        async def handle(lease: Lease) -> None:
            began.set_result(lease)
            await asyncio.sleep(PATIENCE)

        await self.client.subscribe(topic, handle, name="s")
        await self.client.schedule(topic, "x", id="a")
        lease = await began
        await self.client.cancel(topic, "a")
        await eventually(lambda: _lost(lease))
        with self.assertRaises(errors.LeaseLostError):
            await lease.checkpoint("y")
        with self.assertRaises(errors.LeaseLostError):
            lease.set_result("y")


async def _lost(lease: Lease) -> bool:
    return lease.lost is not None
