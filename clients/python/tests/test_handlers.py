"""What handlers may raise and return: it concerns their own timer alone."""

from __future__ import annotations

import asyncio
import builtins
import inspect
import logging
import os
import random
import subprocess
import sys
import unittest
from collections.abc import Callable
from typing import Any

import wakebell
from wakebell import Draft, Lease, Reject, Retry, aio, errors

from .node import PATIENCE, TOKEN, Case, eventually, name, shared

_CONSTRUCTED = {
    UnicodeDecodeError: ("utf-8", b"x", 0, 1, "broken"),
    UnicodeEncodeError: ("utf-8", "x", 0, 1, "broken"),
    UnicodeTranslateError: ("x", 0, 1, "broken"),
    BaseExceptionGroup: ("many", [KeyboardInterrupt(), SystemExit(3)]),
    ExceptionGroup: ("many", [ValueError(), StopIteration()]),
}


class Mute(Exception):
    """An exception that cannot be printed."""

    def __str__(self) -> str:
        raise SystemExit("in __str__")

    __repr__ = __str__


class Surrogate(Exception):
    def __str__(self) -> str:
        return "\ud800" * 3000


class Uninitialized(Retry):
    def __init__(self) -> None:
        pass


class Liar(Exception):
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise KeyboardInterrupt("in __class__")


class Changed(Retry):
    def __init__(self, delay: Any) -> None:
        super().__init__(0.0)
        self.delay = delay


def builtin_exceptions() -> list[Callable[[], BaseException]]:
    kinds = [k for k in vars(builtins).values() if inspect.isclass(k) and issubclass(k, BaseException)]
    return [lambda kind=kind: kind(*_CONSTRUCTED.get(kind, ())) for kind in kinds]  # type: ignore[misc]


def raises() -> list[Callable[[], BaseException]]:
    """Return what a handler may raise, each to be made anew."""
    delays = (float("nan"), float("inf"), -float("inf"), -1.0, 1e300, "soon", None, 10**400)
    made: list[Callable[[], BaseException]] = [lambda d=d: Changed(d) for d in delays]  # type: ignore[misc]
    made += [lambda: Retry(float("nan")), lambda: Retry(-5), Mute, Surrogate, Uninitialized, Liar]
    return made + [asyncio.CancelledError, *builtin_exceptions()]


class Quiet(logging.Filter):
    """A filter of a user that raises."""

    def filter(self, record: logging.LogRecord) -> bool:
        if "failed on" in record.getMessage():
            raise SystemExit("in a filter")
        return True


class Handlers(Case):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        quiet, logger = Quiet(), logging.getLogger("wakebell")
        logger.addFilter(quiet)
        self.addCleanup(logger.removeFilter, quiet)

    async def settle(self, handle: aio.Handler, attempts: dict[str, int], count: int) -> None:
        """Deliver ``count`` timers, and see that each fails once and the client works on."""
        topic = name()
        await self.client.subscribe(topic, handle, name="s", credits=10)
        await self.client.schedule_batch([Draft(topic=topic, id=str(n)) for n in range(count)])
        await eventually(lambda: self.is_settled(topic))
        self.assertEqual(attempts, {str(n): 2 for n in range(count)})

    async def test_a_coroutine_may_raise_anything(self) -> None:
        attempts: dict[str, int] = {}
        made = raises()

        async def handle(lease: Lease) -> None:
            attempts[lease.id] = lease.attempt
            if lease.attempt == 1:
                raise made[int(lease.id)]()

        await self.settle(handle, attempts, len(made))

    async def test_a_thread_may_raise_anything(self) -> None:
        attempts: dict[str, int] = {}
        made = raises()

        def handle(lease: Lease) -> None:
            attempts[lease.id] = lease.attempt
            if lease.attempt == 1:
                raise made[int(lease.id)]()

        await self.settle(handle, attempts, len(made))

    async def test_random_handlers_do_not_stop_a_client(self) -> None:
        seed = int(os.environ.get("WAKEBELL_TEST_SEED", random.randrange(2**32)))
        draw = random.Random(seed)
        attempts: dict[str, int] = {}
        made = raises()

        class Strange:
            """An awaitable that misbehaves."""

            def __init__(self, yields: Any) -> None:
                self.yields = yields

            def __await__(self) -> Any:
                yield self.yields

        async def later(error: BaseException) -> None:
            await asyncio.sleep(0)
            raise error

        def strange() -> Any:
            async def never() -> Any:
                yield 1

            return draw.choice([Strange(3), Strange(asyncio.get_event_loop_policy()), never(), (n for n in [1])])

        def handle(lease: Lease) -> Any:
            attempts[lease.id] = lease.attempt
            if lease.attempt > 1:
                return draw.choice([None, 0, "text", object(), [], Ellipsis])
            match draw.randrange(3):
                case 0:
                    raise draw.choice(made)()
                case 1:
                    return later(draw.choice(made)())
                case _:
                    return strange()

        with self.subTest(seed=seed):
            await self.settle(handle, attempts, 200)

    async def test_reject_of_any_reason_is_a_dead_letter(self) -> None:
        topic = name()
        reasons: list[Any] = ["", "x" * 5000, "\ud800", None, b"\xff", Mute()]

        def handle(lease: Lease) -> None:
            raise Reject(reasons[int(lease.id)])

        await self.client.subscribe(topic, handle, name="s")
        await self.client.schedule_batch([Draft(topic=topic, id=str(n)) for n in range(len(reasons))])
        await eventually(lambda: self.is_settled(topic))
        self.assertEqual((await self.client.stats(topic)).dead, len(reasons))

    async def test_a_generator_is_no_handler(self) -> None:
        def generator(lease: Lease) -> Any:
            yield lease

        async def asynchronous(lease: Lease) -> Any:
            yield lease

        for handler in (generator, asynchronous):
            with self.assertRaisesRegex(errors.InvalidError, "generator"):
                await self.client.subscribe(name(), handler, name="s")


class Processes(unittest.TestCase):
    def test_a_blocking_client_refuses_calls_from_its_own_loop(self) -> None:
        topic = name()
        raised: list[BaseException] = []
        with wakebell.Client(shared().address, token=TOKEN, timeout=PATIENCE) as client:

            async def handle(lease: Lease) -> None:
                try:
                    client.stats(topic)
                except BaseException as error:
                    raised.append(error)

            client.subscribe(topic, handle, name="s")
            client.schedule(topic, "x")

            async def refused() -> bool:
                return bool(raised)

            asyncio.run(eventually(refused))
            self.assertRegex(str(raised[0]), "its own event loop")
            self.assertEqual(client.stats(name()).total, 0)

    def test_a_client_after_a_fork_works_or_says_why_not(self) -> None:
        before = wakebell.Client(shared().address, token=TOKEN, timeout=PATIENCE)
        before.stats(name())
        self.addCleanup(before.close)

        def use(client: wakebell.Client) -> str:
            try:
                client.stats(name())
                return "works"
            except errors.ForkedError as error:
                return type(error).__name__

        def both() -> str:
            return f"{use(before)} {use(wakebell.Client(shared().address, token=TOKEN, timeout=PATIENCE))}"

        self.assertEqual(in_child(both), "ForkedError ForkedError")
        self.assertEqual(use(before), "works")

    def test_the_first_client_may_be_made_after_a_fork(self) -> None:
        program = (
            "import os, sys, wakebell\n"
            "idle = wakebell.Client(sys.argv[1], token=sys.argv[2])\n"
            "if os.fork():\n"
            "    os._exit(os.waitstatus_to_exitcode(os.wait()[1]))\n"
            "with wakebell.Client(sys.argv[1], token=sys.argv[2], timeout=30) as client:\n"
            "    client.stats('t')\n"
            "os._exit(0)\n"
        )

        done = subprocess.run([sys.executable, "-c", program, shared().address, TOKEN], timeout=PATIENCE)
        self.assertEqual(done.returncode, 0)


def in_child(work: Callable[[], str]) -> str:
    """Return the result of a function in a child process."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            os.write(writer, work().encode())
        except BaseException as error:
            os.write(writer, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as result:
        text = result.read().decode()
    os.wait()
    return text
