from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.scheduling.builders import cache_of, pod, virtual_node
from vnode.api import pod_terms, selectors
from vnode.api.objects import Object
from vnode.api.owners import OwnerKey
from vnode.api.pod_terms import PodTerm
from vnode.api.rows import AlikeNodes, RowOfNodes, Rows
from vnode.scheduling.cache import Cache
from vnode.scheduling.snapshot import VirtualNodeInfo

WEB = selectors.from_labels({"app": "web"})


def info(cache: Cache, name: str = "a") -> VirtualNodeInfo:
    found = cache.snapshot().get(name)
    assert found is not None
    return found


def cache_with_free(cpu: int = 1000) -> Cache:
    cache = Cache()
    cache.update_node(virtual_node("a"))
    cache.update_free("a", {"cpu": cpu, "pods": 10}, {"cpu": cpu, "pods": 10})
    return cache


def test_a_promise_counts_until_a_word_of_the_target_includes_it() -> None:
    cache = cache_with_free()
    cache.assume(pod("p", cpu="300m"), "a", now=0)
    assert info(cache).free == {"cpu": 700, "pods": 9}
    cache.update_free("a", {"cpu": 1000, "pods": 10}, None)
    assert info(cache).free == {"cpu": 700, "pods": 9}
    cache.observe("p", "a", now=1)
    assert info(cache).free == {"cpu": 700, "pods": 9}
    cache.update_free("a", {"cpu": 650, "pods": 9}, None)
    assert info(cache).free == {"cpu": 650, "pods": 9}
    assert info(cache).requested == {"cpu": 300, "pods": 1}


def test_more_on_one_node_is_news_though_the_sum_is_what_it_was() -> None:
    def told(*gpus: int) -> Rows:
        rows = tuple(RowOfNodes(1, {"gpu": each}, {"gpu": each}) for each in gpus)
        return Rows((), frozenset({"gpu"}), (AlikeNodes({}, (), rows),), len(rows), True)

    cache, free = cache_with_free(), {"gpu": 8}
    cache.update_free("a", free, free, None, told(4, 4))
    assert not cache.update_free("a", free, free, None, told(4, 4))
    assert cache.update_free("a", free, free, None, told(8, 0))
    assert info(cache).rows == told(8, 0)
    cache.remove_target("a")
    assert cache.update_free("a", free, free, None, told(8, 0))


def test_only_a_word_of_more_is_news_for_pods_that_did_not_fit() -> None:
    cache = cache_with_free(cpu=1000)
    word = {"cpu": 1000, "pods": 10}
    assert not cache.update_free("a", word, word)
    assert not cache.update_free("a", {"cpu": 900, "pods": 9}, word)
    assert cache.update_free("a", {"cpu": 900, "pods": 10}, word)
    assert cache.update_free("a", {"cpu": 900, "pods": 10}, {**word, "x/gpu": 1})
    assert cache.update_free("a", None, None)


def test_a_promise_that_nobody_confirms_lapses() -> None:
    cache = cache_with_free()
    cache.assume(pod("p", cpu="300m"), "a", now=0)
    assert cache.next_lapse() == 15
    assert cache.lapse(now=14.9) == set()
    assert info(cache).free == {"cpu": 700, "pods": 9}
    assert cache.lapse(now=15) == {"a"}
    assert info(cache).free == {"cpu": 1000, "pods": 10}
    assert cache.next_lapse() is None


def test_a_promise_lapses_soon_when_the_last_report_had_the_pod_already() -> None:
    cache = cache_with_free()
    cache.assume(pod("p", cpu="300m"), "a", now=0)
    cache.assume(pod("q", cpu="300m"), "a", now=0)
    cache.update_free("a", {"cpu": 700, "pods": 9}, None)
    cache.observe("p", "a", now=1)
    cache.observe("p", "a", now=4)
    assert cache.next_lapse() == 6
    assert cache.lapse(now=6) == {"a"}
    assert info(cache).free == {"cpu": 400, "pods": 8}
    assert cache.next_lapse() == 15


def test_a_report_of_the_same_is_news_if_it_ends_a_promise() -> None:
    cache = cache_with_free()
    cache.assume(pod("p", cpu="300m"), "a", now=0)
    report = {"cpu": 700, "pods": 9}
    assert not cache.update_free("a", report, report)
    cache.observe("p", "a", now=1)
    assert cache.update_free("a", report, report)
    assert not cache.update_free("a", report, report)


def test_forgetting_gives_everything_back() -> None:
    cache = cache_with_free()
    cache.assume(pod("p", cpu="300m", owner="o"), "a", now=0)
    assert cache.snapshot().pod_counts.owned(OwnerKey("default/o")) == {"a": 1}
    cache.forget("p", "a")
    cache.forget("p", "a")
    assert info(cache).free == {"cpu": 1000, "pods": 10}
    assert not cache.snapshot().pod_counts.owned(OwnerKey("default/o"))


def test_a_binding_keeps_the_promise_and_ends_those_of_other_nodes() -> None:
    cache = cache_with_free()
    cache.update_node(virtual_node("b"))
    cache.update_free("b", {"cpu": 1000, "pods": 10}, None)
    cache.assume(pod("p", cpu="300m"), "a", now=0)
    cache.assume(pod("p", cpu="300m"), "b", now=0)
    cache.set_pod(pod("p", cpu="300m", node="a"))
    assert info(cache, "a").free == {"cpu": 700, "pods": 9}
    assert info(cache, "b").free == {"cpu": 1000, "pods": 10}


def test_a_finished_pod_is_nowhere_and_a_terminating_one_only_holds_its_resources() -> None:
    cache = cache_with_free()
    terminating = pod("t", node="a", owner="o")
    terminating["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cache.set_pod(pod("t", node="a", owner="o"))
    cache.set_pod(terminating)
    assert not cache.snapshot().pod_counts.owned(OwnerKey("default/o"))
    assert info(cache).requested["pods"] == 1
    cache.set_pod(pod("t", node="a", owner="o", phase="Succeeded"))
    assert info(cache).requested["pods"] == 0


def test_a_snapshot_is_shared_until_something_changes() -> None:
    cache = cache_with_free()
    before = cache.snapshot().nodes
    cache.set_pod(pod("p"))
    assert cache.snapshot().nodes is before
    cache.set_pod(pod("p", node="a"))
    after = cache.snapshot().nodes
    assert after is not before
    cache.set_pod(pod("p", node="a"))
    assert cache.snapshot().nodes is after


def test_a_removed_target_is_not_offered_and_its_pods_are_still_counted() -> None:
    cache = cache_with_free()
    cache.set_pod(pod("p", node="a"))
    cache.remove_target("a")
    cache.remove_node("never there")
    assert len(cache.snapshot()) == 0
    cache.update_node(virtual_node("a"))
    assert info(cache).requested == {"pods": 1}
    assert info(cache).free is None


def test_a_node_that_is_made_anew_has_free_what_its_target_has_reported() -> None:
    """Long before the next report: the Node was deleted, and not its Target."""
    cache = cache_with_free()
    before = info(cache).free
    cache.remove_node("a")
    assert len(cache.snapshot()) == 0
    cache.update_node(virtual_node("a"))
    assert info(cache).free == before is not None
    cache.remove_node("a")
    cache.remove_target("a")
    cache.update_node(virtual_node("a"))
    assert info(cache).free is None


def test_selectors_are_counted_by_namespace_as_pods_come_and_go() -> None:
    cache = cache_with_free()
    cache.set_pod(pod("p", node="a", labels={"app": "web"}))
    placements = cache.snapshot().pod_counts
    assert placements.matching("default", WEB) == {"a": 1}
    cache.set_pod(pod("q", node="a", labels={"app": "web"}))
    cache.set_pod(pod("r", node="a", labels={"app": "db"}))
    cache.set_pod(pod("s", node="a", labels={"app": "web"}, namespace="other"))
    assert placements.matching("default", WEB) == {"a": 2}
    cache.set_pod(pod("q", node="a", labels={"app": "db"}))
    assert placements.matching("default", WEB) == {"a": 1}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["assume", "observe", "forget", "bind", "finish", "remove", "free"]),
        st.sampled_from(["p", "q", "r"]),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["web", "db"]),
    ),
    max_size=30,
)


@given(STEPS)
def test_counts_always_agree_with_the_pods_that_are_there(
    steps: list[tuple[str, str, str, str]],
) -> None:
    cache = cache_with_free()
    cache.update_node(virtual_node("b"))
    model: dict[tuple[str, str], str] = {}
    cache.snapshot().pod_counts.matching("default", WEB)
    for action, uid, node, app in steps:
        made = pod(uid, cpu="100m", labels={"app": app}, owner="o")
        if action == "assume":
            cache.assume(made, node, now=0)
            model[uid, node] = app
        elif action == "observe":
            cache.observe(uid, node, now=0)
        elif action == "free":
            cache.update_free(node, {"cpu": 5000, "pods": 50}, None)
        elif action == "forget":
            cache.forget(uid, node)
            model.pop((uid, node), None)
        elif action == "bind":
            made["spec"]["nodeName"] = node
            cache.set_pod(made)
            model = {k: v for k, v in model.items() if k[0] != uid} | {(uid, node): app}
        else:
            made["status"]["phase"] = "Failed"
            cache.set_pod(made) if action == "finish" else cache.remove_pod(uid)
            model = {k: v for k, v in model.items() if k[0] != uid}

    snapshot = cache.snapshot()
    assert snapshot.pod_counts.owned(OwnerKey("default/o")) == Counter(node for _, node in model)
    web = Counter(node for (_, node), app in model.items() if app == "web")
    assert snapshot.pod_counts.matching("default", WEB) == web
    for info in snapshot:
        there = sum(name == info.name for _, name in model)
        assert info.requested.get("cpu", 0) == 100 * there
        if info.free is not None:
            promised = (5000 if info.free["cpu"] > 1000 else 1000) - info.free["cpu"]
            assert 0 <= promised <= 100 * there

    cache.lapse(now=100)
    assert cache.next_lapse() is None
    assert all(n.free is None or n.free["cpu"] in (1000, 5000) for n in cache.snapshot())


def test_long_terms_are_compiled_once_for_a_pod_that_is_changed_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = list[Object]()

    def repelled(each: Object) -> tuple[PodTerm, ...]:
        compiled.append(each)
        return real(each)

    real = pod_terms.repelled
    monkeypatch.setattr(pod_terms, "repelled", repelled)
    cache, term = cache_of("a"), {"topologyKey": "zone", "labelSelector": {}}
    for number in range(10):
        affinity = {"podAntiAffinity": {pod_terms.REQUIRED: [{**term}]}}
        cache.set_pod(pod("p", node="a", labels={"number": str(number)}, affinity=affinity))

    assert len(compiled) == 1
    assert len(cache.snapshot().pod_counts.repelling["default"]) == 1
    cache.set_pod(pod("p", node="a"))
    assert not cache.snapshot().pod_counts.repelling
