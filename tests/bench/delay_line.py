"""`python -m tests.bench.delay_line HOST PORT`: a TCP server as far away as one likes.

Whatever comes is passed on, in both directions, after a delay; the first bytes of a connection wait
for as long as its handshake would have taken. Nothing is lost, and the rate has no bound. It passes
bytes without a look at them, so that whoever is behind it shows its own certificate; it has a
process of its own, since it must not be late. Each line on stdin is a new delay in seconds one way;
the port on which it listens is printed first.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from hack.fleetlib import processes

_TICK: Final = 0.0005  # seconds by which a timer may be early
_HANDSHAKE: Final = 3  # ways until the first bytes arrive: there, back, and there again


class DelayLine:
    """Listens in front of one server; `delay` in seconds one way holds from now on."""

    def __init__(self, host: str, port: int) -> None:
        self.delay = 0.0
        self._host, self._port = host, port
        self._opening: set[asyncio.Task[None]] = set()

    async def start(self) -> asyncio.Server:
        """Listen on another port of the same host."""
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: _Side(self, self._open), self._host, 0)

    def _open(self, near: _Side) -> None:
        far = _Side(self)
        far.other, near.other = near, far
        far.not_before(asyncio.get_running_loop().time() + _HANDSHAKE * self.delay)
        task = asyncio.create_task(self._connect(far), name="connect")
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _connect(self, far: _Side) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: far, self._host, self._port)
        except OSError:
            assert far.other is not None, "opened from the other side"
            far.other.send(None)


class _Side(asyncio.Protocol):
    """One side of a connection: what is sent to it goes out later, in order."""

    def __init__(self, line: DelayLine, opened: object = None) -> None:
        self.other: _Side | None = None
        self._line = line
        self._opened = opened
        self._out: asyncio.Transport | None = None
        self._later: deque[tuple[float, bytes | None]] = deque()  # when, and what; None: the end
        self._last = 0.0  # when the last one is due
        self._timer: asyncio.TimerHandle | None = None  # of the first one, once connected

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "of TCP"
        self._out = transport
        if callable(self._opened):
            self._opened(self)

        self._set_timer()

    def data_received(self, data: bytes) -> None:
        assert self.other is not None, "opened"
        self.other.send(data)

    def connection_lost(self, _error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

        if self.other is not None:
            self.other.send(None)

    def not_before(self, moment: float) -> None:
        """Have nothing go out before a moment of the loop's clock."""
        self._last = max(self._last, moment)

    def send(self, data: bytes | None) -> None:
        """Have something go out after the delay; None ends the connection."""
        self.not_before(asyncio.get_running_loop().time() + self._line.delay)
        self._later.append((self._last, data))
        self._set_timer()

    def _set_timer(self) -> None:
        if self._later and self._timer is None and self._out is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(self._later[0][0], self._flush)

    def _flush(self) -> None:
        assert self._out is not None, "the timer is set once connected"
        self._timer = None
        now = asyncio.get_running_loop().time() + _TICK
        while self._later and self._later[0][0] <= now:
            _, data = self._later.popleft()
            if data is None:
                self._out.close()
            else:
                self._out.write(data)

        self._set_timer()


class FarServer:
    """A delay line that runs, as whoever started it sees it."""

    def __init__(self, orders: asyncio.StreamWriter, url: str) -> None:
        self.url = url
        self._orders = orders

    def set_delay(self, seconds: float) -> None:
        """Be that far away, in seconds one way, from now on."""
        self._orders.write(f"{seconds}\n".encode())


@asynccontextmanager
async def running(host: str, port: int, netns: str | None = None) -> AsyncIterator[FarServer]:
    """Run a delay line in front of a server for the block, in its network namespace."""
    pipe = asyncio.subprocess.PIPE
    own = [sys.executable, "-m", "tests.bench.delay_line", host, str(port)]
    command = processes.in_network(netns, own)
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None, "a pipe"
    assert stdout is not None, "a pipe"
    try:
        yield FarServer(stdin, f"https://{host}:{int(await stdout.readline())}")
    finally:
        stdin.close()
        await process.wait()


async def main(host: str, port: int) -> None:
    """Run until stdin ends."""
    line, loop = DelayLine(host, port), asyncio.get_running_loop()
    server = await line.start()
    print(server.sockets[0].getsockname()[1], flush=True)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while text := await reader.readline():
        line.delay = float(text)

    server.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
