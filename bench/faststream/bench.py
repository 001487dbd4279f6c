"""Handles the due timers of the topic "faststream" and prints the figures as JSON.

Usage: python3 bench.py PORT TIMERS CONCURRENCY (0: the default)
"""

import asyncio
import json
import resource
import sys
import time

from faststream_redis_timers import TimersBroker
from redis.asyncio import Redis


async def main(port: int, timers: int, concurrency: int) -> None:
    broker = TimersBroker(Redis(port=port))
    handled = 0
    done = asyncio.Event()
    options = {"max_concurrent": concurrency} if concurrency else {}

    @broker.subscriber("faststream", **options)
    async def handle(body: bytes) -> None:
        nonlocal handled
        handled += 1
        if handled == timers:
            done.set()

    began = time.perf_counter()
    await broker.start()
    await done.wait()
    took = time.perf_counter() - began
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"rate": timers / took, "client_us": (usage.ru_utime + usage.ru_stime) * 1e6 / timers}))
    await broker.close()


asyncio.run(main(*map(int, sys.argv[1:])))
