"""The benchmark's own arithmetic: it is only worth reading if it counts right."""

from __future__ import annotations

from collections import Counter

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.bench import accounts, figures, report
from tests.bench.figures import PLAIN, VNODE, BenchmarkRun, Phase, Quantiles

METRICS = """
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",resource="pods",subresource="",verb="POST"} 300
apiserver_request_total{code="409",resource="pods",subresource="",verb="POST"} 2
apiserver_request_total{code="201",resource="pods",subresource="binding",verb="POST"} 1e+02
apiserver_request_total{code="200",resource="pods",subresource="",verb="WATCH"} 7
apiserver_request_total{code="200",resource="",subresource="/metrics",verb="GET"} 9
apiserver_current_inflight_requests{request_kind="mutating"} 1
"""


def test_requests_are_counted_by_verb_and_resource_whatever_their_answer() -> None:
    assert accounts.parse_requests(METRICS) == {"POST pods": 302, "POST pods/binding": 100}


def test_the_idle_background_is_taken_off_the_requests_of_a_pod() -> None:
    before, after = {"c1": Counter({"GET nodes": 10})}, {"c1": Counter({"GET nodes": 30})}
    after["c1"]["POST pods"] = 10
    counted = accounts.per_pod(before, after, {"c1": {"GET nodes": 2.0}}, seconds=10, pods=10)
    assert counted == {"c1": {"POST pods": 1.0}}


@given(st.lists(st.floats(0, 100), min_size=1))
def test_quantiles_are_values_that_were_measured_and_in_order(values: list[float]) -> None:
    found = figures.quantiles(values)
    ranked = [found.p50, found.p90, found.p99, found.max]
    assert ranked == sorted(ranked)
    assert set(ranked) <= {round(value, 4) for value in values}


def test_of_a_hundred_values_the_quantiles_are_those_of_that_rank() -> None:
    assert figures.quantiles(range(1, 101)) == Quantiles(50, 90, 99, 100)


def phase(system: str, pods: int, rate: float, *, burst: bool = True) -> Phase:
    """Return a phase in which all went well."""
    times = Quantiles(0.1, 0.2, 0.3, 0.4)
    return Phase(
        system=system,
        burst=burst,
        pods=pods,
        bound=times,
        running=times,
        bound_rate=rate,
        running_rate=rate,
        create_rate=rate,
        requests={"c1": {"POST pods": 1.0}, "c2": {"POST podchaperons": 0.5}},
        processes={"c1 agent": figures.ProcessUsage(1.5, 80)},
        bench_cpu=0.1,
        others=0.0,
        seconds=1.0,
        deleted=1.0,
        delegates={},
        lost=[],
        doubled=[],
    )


def run(*phases: Phase) -> BenchmarkRun:
    """Return a run of these phases on some machine."""
    return BenchmarkRun("2026-01-01", 2, "3.11", "0", "v1", 20, {}, list(phases))


def test_the_yardstick_is_the_mean_of_its_bursts() -> None:
    done = run(phase(PLAIN, 300, 60), phase(VNODE, 300, 24), phase(PLAIN, 300, 100))
    aim = next(aim for aim in figures.aims(done) if "of plain" in aim.text)
    assert aim.measured == 0.3
    assert aim.reached


def test_a_pod_by_itself_is_compared_with_a_plain_one() -> None:
    singles = [msgspec.structs.replace(phase(s, 30, 1), burst=False) for s in (PLAIN, VNODE)]
    (aim,) = (aim for aim in figures.aims(run(*singles)) if "plain pod's" in aim.text)
    assert (aim.limit, aim.measured) == (1.5, 1.0)


def test_agents_of_all_clusters_count_together() -> None:
    used = {
        "c1 agent": figures.ProcessUsage(1.5, 80),
        "c2 agent": figures.ProcessUsage(0.6, 80),
        "c2 kube-apiserver": figures.ProcessUsage(9, 300),
    }
    burst = msgspec.structs.replace(phase(VNODE, 300, 20), processes=used)
    (aim,) = (aim for aim in figures.aims(run(burst)) if "agents" in aim.text)
    assert (aim.measured, aim.reached) == (7.0, True)


def test_an_aim_without_its_phase_is_not_judged() -> None:
    assert [aim.text for aim in figures.aims(run(phase(PLAIN, 300, 60)))] == [
        "pods lost or bound twice"
    ]


def test_elected_pods_on_a_real_kubelet_have_an_aim_and_a_table_of_their_own() -> None:
    plain, elected = phase(PLAIN, 40, 1), phase(VNODE, 40, 1)
    done = msgspec.structs.replace(run(phase(VNODE, 300, 20)), real=[plain, elected])
    (aim,) = (aim for aim in figures.aims(done) if "real kubelet" in aim.text)
    assert (aim.limit, aim.measured) == (22, 1.5)
    table = report.text(done).split("on a real kubelet, by API server")[1]
    assert "plain 40  vnode 40" in table


def test_a_run_without_its_real_kubelet_is_good_only_if_nobody_asked_for_one() -> None:
    done = run(phase(VNODE, 300, 20))
    assert done.is_good
    failed = msgspec.structs.replace(done, real_failure="containerd of c2 ended")
    assert not failed.is_good
    assert "NOT MEASURED ON A REAL KUBELET: containerd of c2 ended" in report.text(failed)


def test_leases_are_no_requests_of_a_pod() -> None:
    before = {"c1": Counter({"PUT leases": 10})}
    after = {"c1": Counter({"PUT leases": 30, "POST pods": 10})}
    assert accounts.per_pod(before, after, {}, 10, 10) == {"c1": {"POST pods": 1.0}}


def test_the_table_shows_phases_requests_processes_and_aims() -> None:
    text = report.text(run(phase(VNODE, 30, 7, burst=False), phase(VNODE, 300, 20)))
    for expected in ("vnode 1 x 30", "c2 POST podchaperons", "c1 agent", "requests a pod"):
        assert expected in text
