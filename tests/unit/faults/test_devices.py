"""What has to hold of devices in a random run."""

from __future__ import annotations

from tests import kit
from tests.faults import devices, workloads
from tests.faults.plan import DeviceUse, WantedWorkload, WorkloadKind
from vnode.api.objects import Object


def claim(name: str, owner: str, device: str = "") -> Object:
    reference = {"kind": "Pod", "uid": owner, "controller": True}
    results = [{"pool": "n1", "device": device}] if device else []
    return {
        "metadata": {"name": name, "ownerReferences": [reference]},
        "status": {"allocation": {"devices": {"results": results}}} if results else {},
    }


def pod(uid: str) -> Object:
    return {"metadata": {"name": uid, "uid": uid}}


def test_claims_of_pods_that_are_there_have_a_device_each() -> None:
    claims = [claim("a", "p", "gpu-1"), claim("b", "q", "gpu-2"), claim("c", "q")]
    assert list(devices.wrong(claims, [pod("p"), pod("q")])) == []


def test_a_claim_goes_with_its_pod() -> None:
    found = list(devices.wrong([claim("a", "p")], [pod("q")]))
    assert found == ["claim a is left of a pod that is gone"]


def test_a_device_is_of_one_claim() -> None:
    claims = [claim("a", "p", "gpu-1"), claim("b", "p", "gpu-1")]
    assert list(devices.wrong(claims, [pod("p")])) == ["n1/gpu-1 has 2 claims"]


def test_pods_ask_for_a_device_as_their_workload_does() -> None:
    found = {
        use: workloads.build(WantedWorkload("web", WorkloadKind.POD, device=use))["spec"]
        for use in DeviceUse
    }
    (plain,) = kit.pod("web")["spec"]["containers"]
    assert found[DeviceUse.NONE]["containers"][0]["resources"] == plain["resources"]
    assert found[DeviceUse.GPU]["containers"][0]["resources"]["limits"] == {devices.GPU: "1"}
    (used,) = found[DeviceUse.CLAIM]["resourceClaims"]
    assert found[DeviceUse.CLAIM]["containers"][0]["resources"]["claims"] == [
        {"name": used["name"]}
    ]
    assert used["resourceClaimTemplateName"] == devices.TEMPLATE
