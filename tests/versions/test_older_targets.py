"""A pod whose fields one target would drop: it says so, and runs where they are kept.

On a fleet all of whose clusters have the same features nothing is dropped, so these tests are left
out there: `python -m tests.versions` starts one with an older target, c2.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import pytest

from tests import kit, served
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

FIELDS: Final[dict[str, Object]] = {
    "volumes.image": {"volumes": [{"name": "model", "image": {"reference": "model:1"}}]},
    "resources": {"resources": {"requests": {"cpu": "20m"}}},
    "resourceClaims": {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]},
}
REQUESTS: Final = {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu.example.com"}}]}


def has(pod: Object, field: str) -> bool:
    """Tell whether a field is left of a pod."""
    spec = objects.spec(pod)
    if field == "volumes.image":
        return any("image" in volume for volume in spec.get("volumes") or ())

    return bool(spec.get(field))


@pytest.fixture(params=sorted(FIELDS))
async def field(request: pytest.FixtureRequest, source: Client, c2: Client) -> str:
    """Return a field that the source keeps and c2 drops; leave the test out if it is otherwise."""
    name = str(request.param)
    pod = kit.pod("asked", annotations={}, **FIELDS[name])
    for client, wanted in ((source, True), (c2, False)):
        if has(await served.stored(client, kinds.PODS, pod, "default"), name) != wanted:
            pytest.skip(f"{client.name} {'drops' if wanted else 'keeps'} spec.{name}")

    return name


@pytest.fixture
async def template(source: Client) -> AsyncIterator[None]:
    """Have a template of claims in the source, if that knows them."""
    kind = kinds.RESOURCE_CLAIM_TEMPLATES
    if not await served.serves(source, kind):
        yield
        return

    body = {"metadata": {"name": "gpus"}, "spec": {"spec": {"devices": REQUESTS}}}
    made = await source.create(kind, body, "default")
    yield
    await source.discard(kind, made)


@pytest.mark.usefixtures("template")
async def test_a_target_that_would_drop_a_field_says_so_and_makes_no_pod(
    source: Client, c2: Client, field: str
) -> None:
    reason = f"would drop spec.{field}: its version of Kubernetes lacks that"
    if field == "resourceClaims":  # it is the template that cannot follow
        reason = "does not serve resourceclaimtemplates.resource.k8s.io of version v1"

    await source.create(kinds.PODS, kit.pod_in("c2", "whole", **FIELDS[field]), "default")
    await kit.until_refused(source, "whole", reason)
    assert not await c2.list(kinds.PODS, "default")


async def test_the_pod_runs_where_the_field_is_kept(source: Client, c3: Client, field: str) -> None:
    pod = kit.pod("whole", **FIELDS[field])
    if field == "resourceClaims":
        pytest.skip("c3 has no devices")
    if not has(await served.stored(c3, kinds.PODS, pod, "default"), field):
        pytest.skip(f"c3 drops spec.{field}")

    await source.create(kinds.PODS, pod, "default")
    proxy = await kit.until_running(source, "whole")
    assert objects.node_name(proxy) == "admiralty-default-c3"
    (delegate,) = await c3.list(kinds.PODS, "default")
    assert has(delegate, field)
