"""A node that is killed and started again, and turns that are lost meanwhile."""

from __future__ import annotations

import asyncio

from wakebell import Draft, Lease, State, aio, errors

from .node import PATIENCE, TOKEN, Case, Node, eventually, name


class Kill(Case):
    async def asyncSetUp(self) -> None:
        self.node = Node(lease="1s")
        self.addCleanup(self.node.stop)
        settings = {"token": TOKEN, "timeout": PATIENCE, "dead_link": PATIENCE}
        self.client = await self.enterAsyncContext(aio.Client(self.node.address, turn_ttl=1, **settings))  # type: ignore[arg-type]

    async def test_a_subscriber_reconnects_and_no_timer_is_lost(self) -> None:
        topic = name()
        handled: set[str] = set()
        some = asyncio.Event()

        async def handle(lease: Lease) -> None:
            await asyncio.sleep(0.002)
            handled.add(lease.id)
            if len(handled) > 50:
                some.set()

        with self.assertLogs("wakebell", "WARNING"):
            await self.client.subscribe(topic, handle, name="s", credits=20)
            await self.client.schedule_batch([Draft(topic=topic, id=str(n)) for n in range(300)])
            await asyncio.wait_for(some.wait(), PATIENCE)
            await asyncio.to_thread(self.node.kill)
            more = asyncio.create_task(self.client.schedule(topic, "while the node is down", id="300"))
            await asyncio.to_thread(self.node.start)
            await more
            await eventually(lambda: self.is_settled(topic))
        self.assertEqual(handled, {str(n) for n in range(301)})

    async def test_a_handler_ends_before_its_lease_can_be_delivered_again(self) -> None:
        topic = name()
        leases: list[Lease] = []

        async def handle(lease: Lease) -> None:
            leases.append(lease)
            if len(leases) == 1:
                await asyncio.Event().wait()

        await self.client.subscribe(topic, handle, name="s")
        await self.client.schedule(topic, "x", id="a")

        async def is_running() -> bool:
            return bool(leases)

        await eventually(is_running)
        with self.assertLogs("wakebell", "WARNING"):
            await asyncio.to_thread(self.node.kill)
            await asyncio.to_thread(self.node.start)
            await eventually(lambda: self.is_settled(topic))
        self.assertIsInstance(leases[0].lost, errors.LeaseLostError)
        self.assertGreater(leases[1].attempt, leases[0].attempt)

    async def test_a_handler_gives_its_timer_back_when_the_node_stops(self) -> None:
        async def waits(lease: Lease) -> None:
            began.set()
            await asyncio.Event().wait()

        def waits_in_a_thread(lease: Lease) -> None:
            loop.call_soon_threadsafe(began.set)
            lease.wait_lost(PATIENCE)
            raise ValueError("interrupted")

        loop = asyncio.get_running_loop()
        other = await self.enterAsyncContext(aio.Client(self.node.address, token=TOKEN))
        for handle in (waits, waits_in_a_thread):
            topic, began = name(), asyncio.Event()
            node = Node("--drain-timeout", "100ms", lease="1m")
            self.addCleanup(node.kill)
            client = await self.enterAsyncContext(aio.Client(node.address, token=TOKEN))
            await client.subscribe(topic, handle, name="s")
            await client.schedule(topic, "x", id="a")
            await asyncio.wait_for(began.wait(), PATIENCE)
            await asyncio.to_thread(node.stop)
            timer = await other.get(topic, "a")
            self.assertEqual((timer.state, timer.failures), (State.PENDING, 0))

    async def test_the_block_of_a_lost_turn_is_cancelled(self) -> None:
        with self.assertLogs("wakebell", "WARNING"), self.assertRaises(errors.TurnLostError):
            async with self.client.turn(name()) as turn:
                await asyncio.to_thread(self.node.kill)
                await asyncio.wait_for(asyncio.Event().wait(), PATIENCE)
        self.assertIsNotNone(turn.lost)
        self.assertEqual(asyncio.current_task().cancelling(), 0)  # type: ignore[union-attr]
