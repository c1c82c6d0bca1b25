"""Which generation of a proxy is said to be observed: the newest, once all was done, or none."""

from __future__ import annotations

from tests.unit.pods import strategic
from vnode.api import keys
from vnode.pods import observed_generation
from vnode.pods.source import feedback

FIELD = observed_generation.FIELD
SENT = {keys.SENT: '{"images":{"containers":{"main":"nginx:2"}}}'}


def obj(generation, seen=None, *, conditions=(), image="nginx", annotations=None):
    entries = [{"type": t, "status": "True", FIELD: number} for t, number in conditions]
    status = {"phase": "Running", "conditions": entries}
    return {
        "metadata": {"uid": "u", "generation": generation, "annotations": annotations or {}},
        "spec": {"containers": [{"name": "main", "image": image}]},
        "status": {**status, FIELD: seen} if seen else status,
    }


def numbers(status):
    entries = {entry["type"]: entry.get(FIELD) for entry in status.get("conditions") or ()}
    return status.get(FIELD), entries


def test_a_delegate_that_has_observed_all_has_observed_its_chaperon():
    pod = obj(7, 7, conditions=[("Ready", 7), ("PodScheduled", 1)], annotations=SENT)
    status = observed_generation.by_chaperon(obj(3, annotations=SENT), pod)
    assert numbers(status) == (3, {"Ready": 3, "PodScheduled": None})


def test_before_a_change_is_done_the_chaperon_stays_at_the_generation_before():
    known = obj(2, 1, conditions=[("Ready", 1)], annotations=SENT)
    undone = obj(1, 1, conditions=[("Ready", 1)])
    assert numbers(observed_generation.by_chaperon(known, undone)) == (1, {"Ready": 1})
    unseen = obj(2, 1, conditions=[("Ready", 1)], annotations=SENT)
    assert numbers(observed_generation.by_chaperon(known, unseen)) == (1, {"Ready": 1})
    seen = obj(2, 2, conditions=[("Ready", 1), ("PodResizePending", 2)], annotations=SENT)
    after = {"Ready": 1, "PodResizePending": 2}
    assert numbers(observed_generation.by_chaperon(known, seen)) == (2, after)


def test_a_status_without_numbers_is_taken_as_it_is():
    pod = obj(1)
    assert observed_generation.by_chaperon(obj(1), pod) is pod["status"]


def fed(proxy, chaperon):
    strategic.apply(proxy, feedback.status_patch(proxy, chaperon))
    assert feedback.status_patch(proxy, chaperon) == {}
    return numbers(proxy["status"])


def test_the_numbers_of_a_proxy_are_its_own():
    """Its scheduling gates were lifted, say, before it had a chaperon."""
    assert fed(obj(5), obj(1, 1, conditions=[("Ready", 1)])) == (5, {"Ready": 5})


def test_a_change_is_observed_when_the_delegate_has_observed_it():
    proxy = obj(5)
    fed(proxy, obj(1, 1, conditions=[("Ready", 1)]))
    proxy["metadata"]["generation"] = 6
    proxy["spec"]["containers"][0]["image"] = "nginx:2"
    before = (5, {"Ready": 5})
    assert fed(proxy, obj(1, 1, conditions=[("Ready", 1)])) == before
    assert fed(proxy, obj(2, 1, conditions=[("Ready", 1)], image="nginx:2")) == before
    after = obj(2, 2, conditions=[("Ready", 2)], image="nginx:2")
    assert fed(proxy, after) == (6, {"Ready": 6})


def test_a_target_that_changed_the_delegate_by_itself_says_nothing_of_the_proxy():
    """One that runs Admiralty reports the delegate's own numbers."""
    assert fed(obj(1), obj(1, 4, conditions=[("Ready", 4)])) == (None, {"Ready": None})
