"""What a virtual node offers, beside what others use in its target."""

from __future__ import annotations

import math
import time

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.nodes.test_capacity import make_node
from vnode.api import keys, objects, resources, source_usage
from vnode.nodes import capacity, own_share
from vnode.nodes.capacity import Usage
from vnode.nodes.own_share import INTERVAL, OwnShares
from vnode.scheduling import reported


def delegate(name, cpu, source="", node="a"):
    labels = {keys.PARENT_CLUSTER_UID: source} if source else {}
    containers = [{"resources": {"requests": {"cpu": cpu}}}]
    metadata = {"name": name, "namespace": "ns", "labels": labels}
    return capacity.trim_pod(
        {"metadata": metadata, "spec": {"nodeName": node, "containers": containers}}
    )


def shown(*pods, source="us"):
    usage = Usage()
    for pod in pods:
        usage.change(None, pod)

    nodes = [make_node("a", cpu="8", pods="10"), make_node("lost", cpu="8", ready="Unknown")]
    summary = capacity.summary(nodes, usage)
    free, _ = reported.read_free(summary)
    share = own_share.share(summary, source, free)
    return resources.format_list(share) if share is not None else None


def test_what_others_use_is_left_out_and_what_we_use_is_not():
    ours, theirs = delegate("p", "2", "us"), delegate("q", "1", "others")
    assert shown(ours) == {"cpu": "8", "pods": "10"}
    assert shown(ours, theirs, delegate("local", "500m")) == {"cpu": "6500m", "pods": "8"}
    assert shown(ours, theirs, source="others") == {"cpu": "6", "pods": "9"}
    assert shown(ours, theirs, source="new") == {"cpu": "5", "pods": "8"}


def test_pods_on_nodes_that_do_not_count_are_none_of_ours():
    assert shown(delegate("p", "2", "us", node="lost")) == {"cpu": "8", "pods": "10"}


def test_a_target_that_does_not_say_leaves_it_open():
    summary = capacity.summary([make_node("a", cpu="8")], Usage())
    assert own_share.share(summary, "us", None) is None
    for text in ("", "{}", '{"sources": {}, "complete": false}', "x" * 40_000):
        objects.annotations(summary)[keys.USED_BY_SOURCES] = text
        assert own_share.share(summary, "us", {"cpu": 1}) is None

    del objects.annotations(summary)[keys.USED_BY_SOURCES]
    assert own_share.share(summary, "us", {"cpu": 1}) is None


def test_sources_beyond_the_bound_are_not_told():
    many = {f"s{number}": {"cpu": 1000} for number in range(source_usage.MOST_SOURCES + 5)}
    text = source_usage.encode(many)
    assert len(text) < source_usage.LIMIT
    found = [source_usage.decode(text, uid) for uid in many]
    assert found.count(None) == 5
    assert source_usage.decode(text, "new") is None


def test_of_sources_that_pods_make_up_few_are_written() -> None:
    amounts = {n: n for n in ("cpu", "memory", "pods", *(f"example.com/r{i}" for i in range(7)))}
    used = {f"s{n}": dict.fromkeys(amounts, 1) for n in range(20_000)}
    begun = time.thread_time()
    text = source_usage.encode(used)
    assert time.thread_time() - begun < 0.3  # 0.6 s, if all were written
    assert source_usage.decode(text, "none") is None


def test_sources_that_pods_make_up_take_the_place_of_none_that_has_more_pods() -> None:
    """By digests alone, whoever tries some hundred names finds enough that come first."""
    made_up = {f"s{number}": {"pods": 1} for number in range(1000)}
    text = source_usage.encode({**made_up, "real": {"cpu": 64000, "pods": 200}})
    assert source_usage.decode(text, "real") == {"cpu": 64000, "pods": 200}


def test_resources_that_pods_make_up_keep_no_summary_from_being_written() -> None:
    """A kubelet admits a pod that asks for resources of which its node knows nothing."""
    pods = [delegate("ours", "2", "us")]
    for number in range(20):
        pod = delegate(f"p{number}", "1", f"s{number}")
        names = [f"{'e' * 200}.com/r{number}-{i}" for i in range(resources.MOST)]
        pods.append({**pod, "requests": {**pod["requests"], **dict.fromkeys(names, 1)}})

    usage = Usage()
    for pod in pods:
        usage.change(None, pod)

    summary = capacity.summary([make_node("a", cpu="80", pods="100")], usage)
    assert sum(map(len, objects.annotations(summary).values())) < 10_000
    assert own_share.share(summary, "us", {"cpu": 0}) == {"cpu": 2000, "pods": 1}


def test_the_text_is_never_longer_than_is_read() -> None:
    names = [f"example.com/{number:040d}" for number in range(100)]
    used = {f"s{number}": {"pods": 9, **dict.fromkeys(names, 1)} for number in range(30)}
    text = source_usage.encode({**used, "us": {"pods": 1}})
    assert 0.7 * source_usage.LIMIT < len(text) <= source_usage.LIMIT
    assert source_usage.decode(text, "us") == {"pods": 1}
    assert source_usage.decode(text, "new") is None


def test_sources_are_not_named():
    assert "secret" not in source_usage.encode({"secret": {"cpu": 1}})


def test_what_is_shown_changes_every_ten_seconds_at_most():
    shares = OwnShares()
    assert shares.show("n", {"cpu": 1}, 0.0) == ({"cpu": 1}, math.inf)
    assert shares.show("n", {"cpu": 2}, 1.0) == ({"cpu": 1}, INTERVAL - 1)
    assert shares.show("n", {"cpu": 1}, 2.0) == ({"cpu": 1}, math.inf)
    assert shares.show("n", {"cpu": 3}, INTERVAL) == ({"cpu": 3}, math.inf)
    shares.forget("n")
    assert shares.show("n", {"cpu": 4}, INTERVAL + 1) == ({"cpu": 4}, math.inf)


@given(st.lists(st.tuples(st.sampled_from(["", "us", "others"]), st.integers(1, 3))))
def test_shares_of_all_sources_and_local_pods_make_up_the_whole(pods):
    usage = Usage()
    for number, (source, cpu) in enumerate(pods):
        usage.change(None, delegate(f"p{number}", str(cpu), source))

    for number, (source, cpu) in enumerate(pods):
        usage.change(delegate(f"p{number}", str(cpu), source), None)

    assert usage.of_sources({"a": ("cpu", "pods")}) == {}
    assert usage.of("a") == {}
