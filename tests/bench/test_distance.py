"""The line that delays, and the arithmetic of `make bench-distance`."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from tests.bench import delay_line, distance_figures
from tests.bench.delay_line import DelayLine
from tests.bench.distance_figures import DistanceRun, Stream
from tests.bench.figures import VNODE, Phase, Quantiles

HOST = "127.0.0.1"
WAY = 0.05


def _times(seconds):
    return Quantiles(seconds, seconds, seconds, seconds)


def _phase(*, pods=300, burst=True, rate=20.0, bound=0.1):
    return Phase(
        system=VNODE,
        burst=burst,
        pods=pods,
        bound=_times(bound),
        running=_times(bound),
        bound_rate=rate,
        running_rate=rate,
        create_rate=rate,
        requests={},
        processes={},
        bench_cpu=0,
        others=0,
        seconds=1,
        deleted=1,
        delegates={},
        lost=[],
        doubled=[],
    )


def _run(*, far_rate=18.0, bound=0.2, through=0.5):
    return DistanceRun(
        started="now",
        cores=2,
        python="3.11",
        vnode="1",
        kubernetes="1.36",
        round_trip=0.1,
        near=[_phase(pods=20, burst=False), _phase(rate=21.0)],
        far=[_phase(pods=20, burst=False, bound=bound), _phase(rate=far_rate)],
        near_again=[_phase(pods=20, burst=False), _phase(rate=19.0)],
        streams=[Stream("log", _times(0.4), _times(through))],
    )


def _missed(run):
    return [aim.text for aim in run.aims if not aim.reached]


def test_a_burst_is_compared_with_the_mean_of_those_around_it():
    assert _run().rates == (20.0, 18.0)
    assert _missed(_run(far_rate=16.0)) == []
    assert _missed(_run(far_rate=15.0)) == ["burst, far as a share of near"]


def test_a_pod_has_three_round_trips_and_a_little_more():
    assert _missed(_run(bound=0.35)) == []
    assert _missed(_run(bound=0.36)) == ["one pod to bound, p50, s"]


def test_a_stream_is_held_to_the_round_trips_that_it_takes_more_than_straight():
    run = _run(through=0.56)
    assert run.more(run.streams[0]) == 1.6
    assert _missed(run) == ["log: round trips more"]
    assert "log: round trips more" in distance_figures.text(run)


class _Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self._transport = transport

    def data_received(self, data):
        self._transport.write(data)


async def _echoes():
    return await asyncio.get_running_loop().create_server(_Echo, HOST, 0)


def _port(server):
    return server.sockets[0].getsockname()[1]


@asynccontextmanager
async def _line(delay):
    """Yield a line in front of an echo server, its port, and the echo server."""
    async with await _echoes() as echo:
        line = DelayLine(HOST, _port(echo))
        line.delay = delay
        async with await line.start() as server:
            yield line, _port(server), echo


@asynccontextmanager
async def _connection(port):
    reader, writer = await asyncio.open_connection(HOST, port)
    yield reader, writer
    writer.close()
    await writer.wait_closed()


async def test_bytes_go_there_and_back_in_order_and_not_before_their_time():
    clock = asyncio.get_running_loop().time
    begun = clock()
    async with _line(WAY) as (line, port, _), _connection(port) as (reader, writer):
        writer.write(b"first")
        assert await reader.readexactly(5) == b"first"
        assert clock() - begun >= 4 * WAY - 0.01  # a handshake, and there and back

        begun, sent = clock(), bytes(number // 1000 % 256 for number in range(200_000))
        for number in range(200):
            writer.write(sent[1000 * number :][:1000])
            line.delay = WAY if number < 100 else 0.0  # whoever comes nearer overtakes nothing
            await asyncio.sleep(0)

        assert await reader.readexactly(len(sent)) == sent
        assert clock() - begun >= WAY - 0.01


async def test_the_end_of_a_connection_is_passed_on():
    async with _line(0.0) as (_, port, echo):
        async with _connection(port) as (reader, writer):
            writer.write(b"last")
            assert await reader.readexactly(4) == b"last"

        echo.close()
        async with _connection(port) as (reader, _writer):
            assert await reader.read() == b""  # nobody is behind the line any more


async def test_a_line_in_a_process_of_its_own_takes_orders():
    async with await _echoes() as echo, delay_line.running(HOST, _port(echo)) as far:
        far.set_delay(0.01)
        async with _connection(int(far.url.rpartition(":")[2])) as (reader, writer):
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"hello"
