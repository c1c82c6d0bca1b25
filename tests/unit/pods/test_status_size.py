"""What of a status travels whose size is too large, and how large it may be."""

from __future__ import annotations

import pytest

from vnode.api import errors
from vnode.api.objects import Object
from vnode.pods import status_size

MESSAGE = "x" * 4096


def container(number: int) -> Object:
    mounts = [{"name": f"v{n}", "mountPath": f"/data/{n}", "readOnly": True} for n in range(20)]
    terminated = {"exitCode": 0, "reason": "Completed", "message": MESSAGE}
    return {
        "name": f"c{number}",
        "image": "registry.example/app:1",
        "imageID": "sha256:" + "0" * 64,
        "ready": False,
        "restartCount": 1,
        "state": {"terminated": terminated},
        "lastState": {"terminated": terminated},
        "volumeMounts": mounts,
        "allocatedResources": {"cpu": "1"},
    }


def status(containers: int) -> Object:
    entries = [container(number) for number in range(containers)]
    return {"phase": "Succeeded", "podIP": "10.0.0.1", "containerStatuses": entries}


def pod(containers: int) -> Object:
    return {"spec": {"containers": [{"name": f"c{number}"} for number in range(containers)]}}


@pytest.mark.parametrize("count", [1, 10, 40])
def test_a_status_is_whole_whose_containers_each_have_all_that_a_kubelet_writes(count: int) -> None:
    assert status_size.fitting(status(count), status_size.limit(pod(count))) == status(count)


def test_a_kubelets_status_of_250_containers_is_whole() -> None:
    plain = {"name": "c", "image": "i", "state": {"running": {}}, "padding": "x" * 800}
    whole: Object = {"phase": "Running", "containerStatuses": [plain] * 250}
    assert status_size.size(whole) > 200 * 1024
    assert status_size.fitting(whole, status_size.limit(pod(250))) == whole


def test_how_a_pod_has_ended_is_left_of_the_largest_status() -> None:
    count = 200
    shortened = status_size.fitting(status(count), status_size.TIGHT)
    assert shortened["phase"] == "Succeeded"
    assert shortened["podIP"] == "10.0.0.1"
    codes = [e["state"]["terminated"]["exitCode"] for e in shortened["containerStatuses"]]
    assert codes == [0] * count


def test_mounts_are_left_out_before_messages_are_cut() -> None:
    whole = status(10)
    shortened = status_size.fitting(whole, status_size.size(whole) - 1)
    assert "volumeMounts" not in shortened["containerStatuses"][0]
    assert shortened["containerStatuses"][0]["state"] == whole["containerStatuses"][0]["state"]


def test_a_small_pod_has_no_large_status() -> None:
    assert status_size.limit(pod(1)) < 256 * 1024
    assert status_size.limit(pod(10_000)) < 1024 * 1024


@pytest.mark.parametrize(
    ("code", "message", "is_size"),
    [
        (413, "Request entity too large: limit is 3145728", True),
        (500, "etcdserver: request is too large", True),
        (500, "rpc error: trying to send message larger than max (2 vs. 1)", True),
        (500, "etcdserver: leader changed", False),
        (422, "Invalid value", False),
    ],
)
def test_an_api_server_says_that_an_object_is_too_large(
    code: int, message: str, is_size: bool
) -> None:
    assert status_size.is_too_large(errors.from_status(code, "", message)) is is_size


def test_of_a_status_with_more_values_than_any_kubelet_writes_its_plain_fields_are_read() -> None:
    many = [{"name": f"{number}", "parts": []} for number in range(status_size.MOST_VALUES)]
    ready = {"type": "Ready", "status": "True"}
    reported = {"phase": "Running", "containerStatuses": many, "conditions": [{**ready, "x": many}]}
    assert status_size.readable(reported) == {"phase": "Running", "conditions": [ready]}


def test_how_a_container_has_ended_is_read_however_many_mounts_it_has() -> None:
    mounts = [{"name": f"{number}", "mountPath": "/"} for number in range(status_size.MOST_VALUES)]
    ended = {"name": "main", "state": {"terminated": {"exitCode": 3}}}
    reported = {"phase": "Failed", "containerStatuses": [{**ended, "volumeMounts": mounts}]}
    found = status_size.readable(reported)
    assert found == {"phase": "Failed", "conditions": [], "containerStatuses": [ended]}


def test_of_a_status_that_no_etcd_takes_texts_are_cut() -> None:
    found = status_size.readable({"phase": "Failed", "message": "x" * 2_000_000})
    assert found == {"phase": "Failed", "message": "x" * 4096, "conditions": []}


def test_few_conditions_and_addresses_of_another_cluster_are_read() -> None:
    conditions = [{"type": f"{number}", "status": "True"} for number in range(1000)]
    addresses = [{"ip": f"10.0.0.{number}"} for number in range(200)]
    found = status_size.readable({"conditions": conditions, "podIPs": addresses, "phase": "Failed"})
    assert found["conditions"] == conditions[:100]
    assert found["podIPs"] == addresses[:16]
    assert found["phase"] == "Failed"


def test_an_honest_status_is_read_whole() -> None:
    assert status_size.readable(status(40)) == status(40)
