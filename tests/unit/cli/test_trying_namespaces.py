"""In which namespaces vnode doctor tries what a connection may do."""

from __future__ import annotations

import pytest

from tests.apiserver.server import APIServer
from tests.unit.cli.doctor_facts import connection
from vnode.api import keys, kinds
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.cli.doctor import trying_namespaces

pytestmark = pytest.mark.looptime


async def test_a_namespace_that_is_being_deleted_is_not_tried(clock: Clock) -> None:
    source, target = APIServer("c1", clock), APIServer("c2", clock)
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    for name, more in (
        ("going", {"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        ("staying", {}),
    ):
        metadata: Object = {"name": name, "labels": {label: value}, **more}
        source.add(kinds.NAMESPACES, {"metadata": metadata})

    selected = {"list podchaperons": True, "create podchaperons": False}
    facts = connection(target={"metadata": {"name": "wide"}, "spec": {}}, rights=selected)
    found = await trying_namespaces.completed(facts, source.client(), target.client())
    assert list(found.granted) == ["staying"]
