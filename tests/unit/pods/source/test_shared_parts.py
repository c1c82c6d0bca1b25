from __future__ import annotations

import copy
import tracemalloc
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from vnode.pods.source import shared_parts

CONDITIONS = [
    {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-11-28"}
    for kind in ("Ready", "ContainersReady", "Initialized")
]
STATUS: dict[str, Any] = {
    "phase": "Running",
    "conditions": CONDITIONS,
    "podIPs": [{"ip": "10.0.0.1"}],
    "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": "2026"}}}],
}


def pair() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a proxy, whose own scheduler has added a condition, and its chaperon."""
    own = {"type": "PodScheduled", "status": "True"}
    proxy = {
        "status": {**copy.deepcopy(STATUS), "qosClass": "Burstable"},
        "spec": {"nodeName": "c2"},
    }
    proxy["status"]["conditions"].insert(0, own)
    return proxy, {"status": copy.deepcopy(STATUS), "spec": {"containers": [{"name": "main"}]}}


def test_equal_values_are_kept_once_and_others_stay() -> None:
    proxy, chaperon = pair()
    before = copy.deepcopy((proxy, chaperon))
    shared_parts.share(proxy, chaperon)
    assert (proxy, chaperon) == before
    for field in ("podIPs", "containerStatuses"):
        assert proxy["status"][field] is chaperon["status"][field]

    assert len(chaperon["status"]["conditions"]) == len(CONDITIONS)
    for mine, theirs in zip(
        proxy["status"]["conditions"][1:], chaperon["status"]["conditions"], strict=True
    ):
        assert mine is theirs


def test_a_pair_takes_less_memory() -> None:
    texts = [msgspec.json.encode(each) for each in pair()]

    def kept(*, shared: bool) -> int:
        tracemalloc.start()
        try:
            pairs = []
            for _ in range(100):
                proxy, chaperon = map(msgspec.json.decode, texts)
                pairs.append((proxy, chaperon))
                if shared:
                    shared_parts.share(proxy, chaperon)

            del proxy, chaperon
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    assert kept(shared=True) < 0.7 * kept(shared=False)


def test_lists_of_thousands_are_not_compared_entry_by_entry() -> None:
    class Entry(dict[str, int]):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Entry.compared += 1
            return super().__eq__(other)

        __hash__ = None

    proxy = {"status": {"conditions": [Entry(number=n) for n in range(1000)]}}
    chaperon = {"status": {"conditions": [Entry(number=-n) for n in range(1, 1000)]}}
    shared_parts.share(proxy, chaperon)
    assert Entry.compared < 10


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 1) | st.just(1.0) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from(["spec", "status"]), JSON)


@given(OBJECTS, OBJECTS)
def test_whatever_both_are_they_say_the_same_as_before(proxy: Any, chaperon: Any) -> None:
    before = copy.deepcopy((proxy, chaperon))
    shared_parts.share(proxy, chaperon)
    assert (proxy, chaperon) == before
