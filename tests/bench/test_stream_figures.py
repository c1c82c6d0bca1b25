"""The arithmetic of `make bench-streams`."""

from __future__ import annotations

from tests.bench import stream_figures
from tests.bench.figures import Quantiles
from tests.bench.stream_figures import Copies, Crowd, Latency, StreamsRun

QUICK, SLOW = Quantiles(0.1, 0.1, 0.1, 0.1), Quantiles(0.12, 0.2, 0.2, 0.2)


def _run(served: int) -> StreamsRun:
    return StreamsRun(
        started="now",
        cores=2,
        python="3.11",
        vnode="1",
        kubernetes="1.36",
        busy=0,
        copies=[Copies("out", 64, [1.0, 1.0], [1.5, 1.0], 0.5, 3.0)],
        latency=Latency(QUICK, SLOW),
        crowds=[Crowd("exec sessions", False, 100, served, 1.0, QUICK, 100.0)],
    )


def test_a_ratio_is_of_all_copies_together():
    (copies,) = _run(100).copies
    assert copies.ratio == 0.8
    assert copies.rate(copies.straight) == 64


def test_aims_say_what_was_missed():
    reached = {aim.text: aim.reached for aim in stream_figures.aims(_run(99))}

    assert reached == {
        "rate out, of straight": True,
        "exec true, added p50 in s": False,
        "RSS growth in a copy, MiB": True,
        "exec sessions served, of 100": False,
    }


def test_the_report_shows_every_part():
    shown = stream_figures.text(_run(100))
    for part in ("2 x 64 MiB out", "0.80", "100 exec sessions, through", "MISSED"):
        assert part in shown
