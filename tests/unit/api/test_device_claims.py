"""What pods, ResourceClaims and templates say of devices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import device_claims, kinds

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "resourceClaimName", "resourceClaimTemplateName"]), inner
        )
    ),
    max_leaves=8,
)


def test_claims_and_templates_are_told_apart() -> None:
    spec = {
        "resourceClaims": [
            {"name": "a", "resourceClaimTemplateName": "gpus"},
            {"name": "b", "resourceClaimName": "shared"},
            {"name": "c"},
        ]
    }
    assert list(device_claims.of(spec)) == [
        (kinds.RESOURCE_CLAIM_TEMPLATES, "gpus"),
        (kinds.RESOURCE_CLAIMS, "shared"),
    ]
    assert device_claims.named(spec) == ["shared"]
    assert device_claims.named({}) == []


@given(listed=JSON)
def test_what_has_no_sense_names_nothing(listed: object) -> None:
    for _kind, name in device_claims.of({"resourceClaims": listed}):
        assert isinstance(name, str)


def test_classes_of_all_requests_and_alternatives_count_once() -> None:
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "gpu"}},
        {"name": "b", "firstAvailable": [{"deviceClassName": "big"}, {"deviceClassName": "gpu"}]},
    ]
    claim = {"devices": {"requests": requests}}
    assert device_claims.classes(kinds.RESOURCE_CLAIMS, claim) == ["gpu", "big"]
    template = {"metadata": {}, "spec": claim}
    assert device_claims.classes(kinds.RESOURCE_CLAIM_TEMPLATES, template) == ["gpu", "big"]
    for kind in (kinds.RESOURCE_CLAIMS, kinds.RESOURCE_CLAIM_TEMPLATES):
        assert device_claims.classes(kind, {}) == []


@pytest.mark.parametrize(
    ("status", "user"),
    [
        ({}, ""),
        ({"reservedFor": []}, ""),
        ({"allocation": {"devices": {}}}, "nobody"),
        ({"reservedFor": [{"resource": "pods", "name": "web-0"}]}, "pods/web-0"),
    ],
)
def test_who_has_the_devices_of_a_claim(status: dict[str, object], user: str) -> None:
    assert device_claims.user({"status": status}) == user


CLAIMS = [
    {"name": "gpu", "resourceClaimTemplateName": "gpus"},
    {"name": "nic", "resourceClaimName": "shared"},
]


def test_the_claims_of_a_pod_are_those_that_it_names_and_those_that_were_made_for_it() -> None:
    pod = {"spec": {"resourceClaims": CLAIMS}, "status": {}}
    assert device_claims.unmade(pod) == "gpus"
    assert device_claims.generated(pod, "gpus") == ""
    assert device_claims.names(pod) == {"nic": "shared"}
    made = [{"name": "gpu", "resourceClaimName": "web-gpu-x7f"}]
    pod["status"] = {"resourceClaimStatuses": made}
    assert device_claims.unmade(pod) == ""
    assert device_claims.generated(pod, "gpus") == "web-gpu-x7f"
    assert device_claims.names(pod) == {"gpu": "web-gpu-x7f", "nic": "shared"}


def test_a_template_of_which_no_claim_is_needed_is_not_waited_for() -> None:
    status = {"resourceClaimStatuses": [{"name": "gpu"}]}
    pod = {"spec": {"resourceClaims": CLAIMS[:1]}, "status": status}
    assert device_claims.unmade(pod) == ""
    assert device_claims.names(pod) == {}


def test_claims_for_extended_resources_are_named_by_these() -> None:
    mappings = [{"containerName": name, "resourceName": "example.com/gpu"} for name in "ab"]
    extended = {"resourceClaimName": "web-extended-x7f", "requestMappings": mappings}
    pod = {"spec": {}, "status": {"extendedResourceClaimStatus": extended}}
    assert device_claims.names(pod) == {"example.com/gpu": "web-extended-x7f"}


def test_devices_are_told_by_driver_pool_and_name() -> None:
    results = [{"request": "a", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}]
    claim = {"status": {"allocation": {"devices": {"results": results}}}}
    assert device_claims.devices(claim) == ["gpu.example.com/n1/gpu-0"]
    assert device_claims.devices({}) == []
