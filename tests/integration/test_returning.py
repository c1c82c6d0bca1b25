"""Addresses that targets' load balancers have come back to a Service, beside others."""

from __future__ import annotations

import pytest

from vnode.api import kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import Conflict
from vnode.api.objects import Object
from vnode.following.references import Ref
from vnode.following.write_back import WriteBackController
from vnode.kube.client import Client

OWN = {"ip": "192.0.2.1", "ipMode": "VIP"}
THEIRS = {"ip": "192.0.2.2", "ipMode": "VIP"}


async def test_an_address_that_somebody_writes_meanwhile_is_not_lost(
    client: Client, namespace: str
) -> None:
    """What we know of the Service is older; a status' list is replaced whole."""
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    seen = await client.create(kinds.SERVICES, {"metadata": {"name": "s"}, "spec": spec}, namespace)
    copy: Object = {"status": {"loadBalancer": {"ingress": [THEIRS]}}}
    ref = Ref(kinds.SERVICES, namespace, "s")
    returns = WriteBackController(
        client,
        original=lambda _ref: seen,
        follows=lambda _ref: False,
        copies_of=lambda _ref: {"n1": copy},
        target_exists=lambda _node: True,
        active=True,
        clock=SystemClock(),
    )
    body = {"status": {"loadBalancer": {"ingress": [OWN]}}}
    newer = await client.patch(kinds.SERVICES, "s", body, namespace, subresource="status")
    with pytest.raises(Conflict):  # after which it is tried again
        await returns._reconcile(ref)

    seen = newer
    await returns._reconcile(ref)
    after = await client.get(kinds.SERVICES, "s", namespace)
    assert objects.status(after)["loadBalancer"]["ingress"] == [OWN, THEIRS | {"ipMode": "Proxy"}]
