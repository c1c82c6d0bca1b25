"""What of a delegate's state becomes the proxy's."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.unit.pods import strategic
from vnode.api import keys, objects, shapes
from vnode.api.objects import Object
from vnode.pods import status_size
from vnode.pods.source import after_feedback, feedback, proxy_state

OVER = status_size.limit({"spec": {"containers": [{}]}}) + 65 * 1024


def proxy(status=None, annotations=None, finalizers=(), **spec):
    return {
        "metadata": {
            "name": "web-0",
            "uid": "u1",
            "resourceVersion": "7",
            "annotations": annotations or {},
            "finalizers": list(finalizers),
        },
        "spec": {"containers": [{"name": "main"}], "nodeName": "admiralty-c2", **spec},
        "status": status or {"phase": "Pending", "qosClass": "Burstable"},
    }


def chaperon(status, annotations=None):
    metadata = {"name": "web-0-x", "uid": "c1", "resourceVersion": "1"}
    return {"metadata": {**metadata, "annotations": annotations or {}}, "status": status}


def test_the_delegates_status_replaces_the_proxys():
    patch = feedback.status_patch(
        proxy({"phase": "Pending", "reason": "old", "qosClass": "Burstable"}),
        chaperon({"phase": "Running", "podIP": "10.1.0.7"}),
    )
    assert patch["status"] == {"phase": "Running", "podIP": "10.1.0.7", "reason": None}
    assert patch["metadata"] == {"uid": "u1"}


def test_the_targets_qos_class_is_its_own_affair():
    patch = feedback.status_patch(proxy(), chaperon({"phase": "Pending", "qosClass": "Guaranteed"}))
    assert patch == {}


def test_containers_that_the_target_injected_stay_behind():
    statuses = [{"name": "main", "ready": True}, {"name": "sidecar", "ready": True}]
    patch = feedback.status_patch(
        proxy(), chaperon({"phase": "Running", "containerStatuses": statuses})
    )
    assert patch["status"]["containerStatuses"] == statuses[:1]


def test_a_resize_in_place_is_seen_as_the_delegates_kubelet_reports_it():
    given = {"requests": {"cpu": "2"}}
    status = {
        "phase": "Running",
        "resources": given,
        "allocatedResources": given["requests"],
        "containerStatuses": [
            {"name": "main", "allocatedResources": given["requests"], "resources": given}
        ],
        "conditions": [
            {"type": "PodResizePending", "status": "True", "reason": "Deferred"},
            {"type": "PodResizeInProgress", "status": "True"},
        ],
    }
    seen = proxy({"phase": "Running"})
    strategic.apply(seen, feedback.status_patch(seen, chaperon(status)))
    for field in ("resources", "allocatedResources", "containerStatuses"):
        assert seen["status"][field] == status[field]

    resizing = {"PodResizePending", "PodResizeInProgress"}
    assert {entry["type"] for entry in seen["status"]["conditions"]} == resizing

    strategic.apply(seen, feedback.status_patch(seen, chaperon({**status, "conditions": []})))
    assert seen["status"]["conditions"] == []


def test_nothing_new_is_nothing_written():
    status = {"phase": "Running", "podIP": "10.1.0.7"}
    assert feedback.status_patch(proxy(dict(status)), chaperon(status)) == {}


def test_a_finished_proxy_does_not_come_back_to_life():
    finished = proxy({"phase": "Succeeded"})
    assert feedback.status_patch(finished, chaperon({"phase": "Running"})) == {}


def test_a_pod_that_was_called_failed_does_not_succeed_later():
    finished = proxy({"phase": "Failed", "reason": "DelegateLost"})
    assert feedback.status_patch(finished, chaperon({"phase": "Succeeded"})) == {}


def test_without_a_delegate_only_the_targets_reason_is_told():
    condition = {"type": "PodScheduled", "status": "False", "message": "exceeded quota"}
    patch = feedback.status_patch(
        proxy({"phase": "Pending", "startTime": "t"}), chaperon({"conditions": [condition]})
    )
    assert patch["status"] == {"conditions": [condition]}


def test_others_annotations_come_back_and_ours_or_those_of_a_queue_there_do_not():
    ours = {keys.IS_ALLOWED: "true", keys.PARENT_CLUSTER_UID: "u"}
    patch = feedback.annotations_patch(
        proxy(annotations={"mine": "1"}),
        chaperon({}, {"cni": "x", "kueue.x-k8s.io/workload": "w", **ours}),
        two_way=False,
    )
    assert patch["metadata"]["annotations"] == {"cni": "x", keys.FED_BACK: '{"cni":"x"}'}


def test_a_waiting_container_has_not_started():
    waiting = {
        "phase": "Pending",
        "containerStatuses": [{"name": "main", "state": {"waiting": {}}}],
    }
    assert not feedback.has_started(proxy(waiting))


def test_a_running_init_container_has_started_the_pod():
    running = {
        "phase": "Pending",
        "initContainerStatuses": [{"name": "init", "state": {"running": {}}}],
    }
    assert feedback.has_started(proxy(running))


def test_our_finalizers_go_and_others_stay():
    ours = keys.PREFIX + "default-c2"
    patch = feedback.without_finalizers(proxy(finalizers=[ours, "batch.kubernetes.io/job"]))
    assert patch is not None
    assert patch["metadata"]["finalizers"] == ["batch.kubernetes.io/job"]
    assert patch["metadata"]["resourceVersion"] == "7"


def test_no_finalizer_of_ours_is_no_write():
    assert feedback.without_finalizers(proxy(finalizers=["other/one"])) is None


_json = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
_types = st.sampled_from(
    ["Ready", "ContainersReady", "PodScheduled", "DisruptionTarget", "example.com/gate", "x/y"]
)
_condition = st.fixed_dictionaries(
    {"type": _types, "status": st.sampled_from(["True", "False", "Unknown"])},
    optional={
        "reason": st.sampled_from(["", "Because"]),
        "lastTransitionTime": st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]),
        "observedGeneration": st.integers(1, 3),
    },
)
_status = st.builds(
    lambda odd, usual: {**odd, **usual},
    st.dictionaries(st.text(max_size=8), _json, max_size=3),
    st.fixed_dictionaries(
        {"phase": st.sampled_from(["Pending", "Running"])},
        optional={
            "conditions": st.lists(_condition, max_size=4),
            "podIP": st.sampled_from(["10.1.0.7", "127.0.0.1"]),
            "podIPs": st.lists(st.sampled_from([{"ip": "10.1.0.7"}, {"ip": "fd00::7"}])),
            "hostIPs": _json,
            "resources": _json,
            "observedGeneration": st.integers(1, 3),
        },
    ),
)
_GATES = [{"conditionType": "example.com/gate"}, {"conditionType": "Ready"}]


def _without_directives(value):
    """Return a value as an API server may have it."""
    if isinstance(value, list):
        return [_without_directives(inner) for inner in value]

    if not isinstance(value, dict):
        return value

    return {k: _without_directives(v) for k, v in value.items() if not k.startswith("$")}


@given(_status, _status, _status, st.booleans())
def test_feeding_back_twice_writes_once(before, reported, then, gated):
    """After the patch is applied, there is nothing left to patch; of whatever is let in."""
    pod = proxy(_without_directives(before), **({"readinessGates": _GATES} if gated else {}))
    pod["metadata"]["generation"] = 1
    for status in (reported, then):
        observed = chaperon(status)
        observed["metadata"]["generation"] = 1
        if not shapes.is_chaperon(observed):
            continue

        strategic.apply(pod, feedback.status_patch(pod, observed))
        assert feedback.status_patch(pod, observed) == {}


@given(_status, _status, st.data())
def test_what_an_api_server_left_out_is_not_taken(before, reported, data):
    """Whichever field of a patch is missing; a patch that arrived whole needs no second look."""
    pod = proxy(_without_directives(before))
    observed = chaperon(reported)
    assume(shapes.is_chaperon(observed))
    patch = feedback.status_patch(pod, observed)
    fields = objects.status(patch)
    assume(not any("$patch" in entry for entry in fields.get("conditions") or ()))
    strategic.apply(pod, patch)
    assert after_feedback.is_taken(pod, patch)

    sent = sorted(field for field, value in fields.items() if value is not None)
    assume(sent)
    del pod["status"][data.draw(st.sampled_from(sent))]
    assert not after_feedback.is_taken(pod, patch)


def test_addresses_that_no_pod_has_stay_behind():
    special = ["127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "::1", "fe80::1", "nonsense"]
    for ip in special:
        observed = {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}, {"ip": "fd00::7"}]}
        status = feedback.status_patch(proxy(), chaperon(observed))["status"]
        assert "podIP" not in status
        assert status["podIPs"] == [{"$patch": "replace"}, {"ip": "fd00::7"}]


def test_a_status_without_bounds_is_oversized():
    long = chaperon({"phase": "Running", "reason": "x" * OVER})
    assert "status" in after_feedback.exceeds(proxy(), feedback.status_patch(proxy(), long))
    failed = feedback.status_patch(proxy(), chaperon({"phase": "Failed"}))
    assert not after_feedback.exceeds(proxy(), failed)


def test_a_status_that_grows_in_steps_is_oversized_too():
    """Each of them is small; the API server takes more than a megabyte."""
    pod, observed, taken = proxy(), {"phase": "Running"}, 0
    for step in range(8):
        observed[f"field{step}"] = "x" * (OVER // 4)
        patch = feedback.status_patch(pod, chaperon(observed))
        if not after_feedback.exceeds(pod, patch):
            strategic.apply(pod, patch)
            taken += 1

    assert taken == 3


def test_annotations_that_grow_in_steps_leave_room_for_those_of_users():
    pod = proxy()
    for step in range(8):
        long = {f"a.b/{step}": "x" * (after_feedback.ANNOTATIONS_LIMIT // 4)}
        if not after_feedback.exceeds(pod, {"metadata": {"annotations": long}}):
            pod["metadata"]["annotations"] |= long

    assert len(objects.annotations(pod)) == 3


def test_what_gets_smaller_is_taken_over_though_it_is_large():
    pod = proxy(annotations={"a": "x" * after_feedback.ANNOTATIONS_LIMIT, "b": "x"})
    assert not after_feedback.exceeds(pod, {"metadata": {"annotations": {"b": None}}})
    assert after_feedback.exceeds(pod, {"metadata": {"annotations": {"b": "xx"}}})


def test_a_saved_manifest_counts_though_it_is_not_kept():
    """The API server counts all annotations, by the bytes of their keys and values."""
    manifest = "x" * (250 * 1024)
    pod = proxy_state.trim(proxy(annotations={keys.SOURCE_POD_MANIFEST: manifest}))
    assert not after_feedback.exceeds(pod, {"metadata": {"annotations": {"cni": "x" * 1024}}})
    assert after_feedback.exceeds(pod, {"metadata": {"annotations": {"cni": "x" * 7 * 1024}}})


def test_one_address_replaces_another():
    """A strategic merge would keep both."""
    pod = proxy({"phase": "Running", "podIPs": [{"ip": "10.1.0.7"}]})
    observed = chaperon({"phase": "Running", "podIPs": [{"ip": "10.1.0.8"}]})
    strategic.apply(pod, feedback.status_patch(pod, observed))
    assert pod["status"]["podIPs"] == [{"ip": "10.1.0.8"}]


@pytest.mark.parametrize("field", ["allocatedResources", "resources", "a-map-of-tomorrow"])
@given(
    st.lists(
        st.dictionaries(st.sampled_from("abc"), st.sampled_from(["1", {"x": "1"}, {"y": ["2"]}]))
        | st.none(),
        min_size=1,
        max_size=4,
    )
)
def test_a_map_is_set_changed_and_removed(field: str, values: list[Object | None]):
    """An API server drops a new map whole if it has a directive."""
    pod = proxy()
    for value in values:
        observed = chaperon(objects.without_nulls({"phase": "Running", field: value}))
        strategic.apply(pod, feedback.status_patch(pod, observed))
        assert pod["status"].get(field) == value
        assert not feedback.status_patch(pod, observed)


def test_directives_of_a_patch_are_not_a_targets_to_write():
    observed: Object = {
        "phase": "Running",
        "$patch": "replace",
        "resources": {"$patch": "delete", "a": "b"},
    }
    observed["conditions"] = [{"type": "x/y", "status": "True", "$patch": "delete"}]
    status = feedback.status_patch(proxy(), chaperon(observed))["status"]
    assert "$patch" not in status
    assert status["resources"] == {"a": "b"}
    assert status["conditions"] == [{"type": "x/y", "status": "True"}]


@pytest.mark.parametrize("known", ["text", ["text"], 1, None])
def test_a_map_takes_the_place_of_whatever_a_pod_had_in_that_field(known: object) -> None:
    pod = {"metadata": {}, "status": {"allocatedResources": known}}
    patch = {"status": {"allocatedResources": {"cpu": "1"}}}
    assert after_feedback.exceeds(pod, patch) == ""


@pytest.mark.parametrize("field", sorted(feedback.CLAIM_STATUSES))
def test_names_of_claims_are_those_of_the_pods_own_cluster(field):
    theirs = {"phase": "Running", field: [{"name": "gpu", "resourceClaimName": "theirs"}]}
    ours = {"phase": "Running", field: [{"name": "gpu", "resourceClaimName": "ours"}]}
    assert feedback.status_patch(proxy(ours), chaperon(theirs)) == {}
    assert feedback.status_patch(proxy(ours), chaperon({"phase": "Running"})) == {}
    assert feedback.status_patch(proxy({"phase": "Running"}), chaperon(theirs)) == {}


def test_the_health_of_devices_comes_back():
    device = {"resourceID": "gpu.example.com/n1/gpu-0", "health": "Unhealthy"}
    allocated = [{"name": "claim:gpu", "resources": [device]}]
    containers = [{"name": "main", "allocatedResourcesStatus": allocated}]
    status = {"phase": "Running", "containerStatuses": containers}
    patch = feedback.status_patch(proxy({"phase": "Running"}), chaperon(status))
    assert patch["status"] == {"containerStatuses": containers}


def test_of_a_status_of_a_hundred_thousand_values_few_are_compared():
    entries = [{"name": "main", "ready": [number]} for number in range(40_000)]
    reported = chaperon({"phase": "Failed", "reason": "Evicted", "containerStatuses": entries})
    patch = feedback.status_patch(proxy(), reported)
    assert patch["status"] == {"phase": "Failed", "reason": "Evicted"}
    assert feedback.excess(proxy(), reported, tight=False) == status_size.size(reported["status"])
