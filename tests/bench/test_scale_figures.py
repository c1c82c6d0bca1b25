"""The arithmetic of `make bench-scale`."""

from __future__ import annotations

from tests.bench import accounts, scale_figures
from tests.bench.figures import ProcessUsage, Quantiles
from tests.bench.scale_figures import Lag, Rest, Restart, ScaleRun

METRICS = """
apiserver_request_total{code="201",dry_run="All",resource="pods",subresource="",verb="POST"} 5
apiserver_request_total{code="201",dry_run="",resource="pods",subresource="",verb="POST"} 2
apiserver_request_total{code="200",dry_run="",resource="pods",subresource="",verb="WATCH"} 9
"""


def _run(*, cpu=0.6, writes=()):
    used = {
        "c1 agent": ProcessUsage(cpu, 200),
        "c1 kwok": ProcessUsage(50, 900),
        "c2 agent": ProcessUsage(0.1, 210),
    }
    return ScaleRun(
        started="now",
        cores=2,
        python="3.11",
        vnode="1",
        kubernetes="1.36",
        pods=2000,
        targets=50,
        created=60,
        connected=10,
        rests=[Rest("2000 pods", 60, used, {"c1": {"PUT leases": 1.0}}, 70, 0.0)],
        lags=[Lag("one at a time", Quantiles(0.1, 0.1, 0.1, 0.1))],
        restarts=[Restart("2000 pods", 1.0, 2.0, 3.0, {"c1": dict(writes)})],
    )


def test_a_request_that_is_only_tried_is_none_of_those_that_write():
    after = {"c1": accounts.parse_requests(METRICS)}
    assert after["c1"] == {"POST pods (dry run)": 5, "POST pods": 2}
    assert scale_figures.writes({"c1": {"POST pods": 1}}, after) == {"c1": {"POST pods": 1}}


def test_leases_reads_and_reviews_are_no_writes():
    counts = {"GET pods": 3, "PATCH leases": 4, "POST tokenreviews": 5, "APPLY nodes/status": 1}
    assert scale_figures.writes({"c1": {}}, {"c1": counts}) == {"c1": {"APPLY nodes/status": 1}}


def test_the_busiest_agent_is_held_to_the_aim_and_other_processes_are_not():
    assert all(aim.reached for aim in _run().aims)
    assert _run().most_memory == 210
    assert not all(aim.reached for aim in _run(cpu=2.4).aims)


def test_a_needless_write_misses_the_aim_but_a_heartbeat_of_a_node_does_not():
    assert all(aim.reached for aim in _run(writes=[("PATCH nodes/status", 1)]).aims)
    assert not all(aim.reached for aim in _run(writes=[("PATCH pods", 1)]).aims)


def test_the_text_names_what_was_missed():
    text = scale_figures.text(_run(writes=[("PATCH pods", 1)]))
    assert "1 c1 PATCH pods" in text
    assert "MISSED" in text
