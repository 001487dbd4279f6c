"""One gRPC stream of the service Timers."""

from __future__ import annotations

import asyncio
import queue
import threading

import grpc

from ._pb import remote_pb2

_METHOD = "/wakebell.v1.Timers/Session"


class Session:
    """A stream of frames for an event loop.

    It uses gRPC's threads and not grpc.aio, which logs errors when a process has more
    than one event loop. Each stream has a channel of its own: a channel without a pending
    call polls its connection only every 5 s.
    """

    def __init__(self, channel: grpc.Channel, token: str) -> None:
        self._channel = channel
        self._loop = asyncio.get_running_loop()
        self._received: asyncio.Queue[remote_pb2.Replies | None] = asyncio.Queue()
        self._sent: queue.SimpleQueue[remote_pb2.Commands | None] = queue.SimpleQueue()
        method = channel.stream_stream(
            _METHOD,
            request_serializer=remote_pb2.Commands.SerializeToString,
            response_deserializer=remote_pb2.Replies.FromString,
        )
        metadata = (("authorization", f"Bearer {token}"),) if token else None
        self._call = method(iter(self._sent.get, None), metadata=metadata)
        threading.Thread(target=self._receive, name="wakebell-session", daemon=True).start()

    def write(self, frame: remote_pb2.Commands) -> None:
        """Send a frame. Frames of a broken stream are lost."""
        self._sent.put(frame)

    async def read(self) -> remote_pb2.Replies | None:
        """Return the next frame, or None at the end of the stream."""
        return await self._received.get()

    def status(self) -> tuple[grpc.StatusCode, str]:
        """Return the status of a stream that has ended, and its text."""
        return self._call.code(), self._call.details() or ""

    def close(self) -> None:
        """Send the end of the stream."""
        self._sent.put(None)

    def end(self) -> None:
        """End the stream at once."""
        self._call.cancel()
        self._sent.put(None)  # ends gRPC's thread that waits for frames
        self._channel.close()

    def _receive(self) -> None:
        try:
            for frame in self._call:
                self._pass(frame)
        except grpc.RpcError:
            pass  # status has the reason
        self._pass(None)

    def _pass(self, frame: remote_pb2.Replies | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._received.put_nowait, frame)
        except RuntimeError:
            pass  # the loop is closed
