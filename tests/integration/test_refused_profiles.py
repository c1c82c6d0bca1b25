"""What a ClusterProfile, or a reference to one, must not be: refused on its Target, or at once."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests import inventory, kit
from tests.integration.inventoried import Inventoried, agent_token, inventoried
from vnode.api import kinds, objects
from vnode.api.errors import Invalid
from vnode.api.objects import Object

__all__ = ["inventoried"]


async def test_what_a_profile_must_not_do_is_refused_on_its_target(
    inventoried: Inventoried,
) -> None:
    await inventory.installed(inventoried.source)
    elsewhere = await kit.new_namespace(inventoried.source, f"other-{uuid.uuid4().hex[:8]}")
    good, own = inventoried.access, inventoried.own_access
    cluster = good["cluster"]

    def changed(**fields: Any) -> Object:
        return {"accessProviders": [{**good, "cluster": {**cluster, **fields}}]}

    profiles = {
        "none": ({}, "NoAccessProvider"),
        "unknown": ({"accessProviders": [{**good, "name": "google"}]}, "UnknownProvider"),
        "plain": (changed(server="http://c2.example"), "ProfileRefused"),
        "file": (changed(**{"certificate-authority": "/etc/passwd"}), "ProfileRefused"),
        "anyone": (changed(**{"insecure-skip-tls-verify": True}), "ProfileRefused"),
        "proxy": (changed(**{"proxy-url": "http://c3.example"}), "ProfileRefused"),
        "itself": ({"accessProviders": [own]}, "Unauthorized"),
        "rubbish": ({"accessProviders": [{**good, "name": "rubbish"}]}, "PluginFailed"),
        "hanging": ({"accessProviders": [{**good, "name": "hanging"}]}, "PluginFailed"),
        "good": ({"accessProviders": [good]}, "Connected"),
    }
    for name, (status, _reason) in profiles.items():
        await inventoried.add(name, status)

    await inventory.add_profile(inventoried.source, elsewhere, "good", {"accessProviders": [good]})
    await inventoried.add_target("elsewhere", (elsewhere, "good"))
    expected = {name: reason for name, (_status, reason) in profiles.items()}
    expected["elsewhere"] = "NamespaceNotAllowed"
    async with inventoried.agent():
        await kit.until(
            inventoried.source,
            kinds.CLUSTER_TARGETS,
            lambda all_: (
                expected.items()
                <= {name: inventory.reason(target) for name, target in all_.items()}.items()
            ),
        )


async def test_a_profile_of_the_source_itself_is_refused(inventoried: Inventoried) -> None:
    await inventory.installed(inventoried.source)
    await inventoried.put_token("c1", await agent_token(inventoried.source))
    access = {
        **inventoried.own_access,
        "cluster": {
            **inventoried.own_access["cluster"],
            "extensions": [{"name": inventory.EXTENSION, "extension": {"clusterName": "c1"}}],
        },
    }
    await inventoried.add("self", {"accessProviders": [access]})
    async with inventoried.agent():
        found = await inventoried.until_reason("self", "SourceItself")
        condition = objects.condition(found, "Ready") or {}
        assert "name a profile of another cluster, or set self: true" in condition["message"]


async def test_the_api_server_refuses_references_that_are_ambiguous(
    inventoried: Inventoried,
) -> None:
    named = {"name": "c2", "namespace": inventoried.namespace}
    specs: list[Object] = [
        {"clusterProfile": {"name": "c2"}},
        {"clusterProfile": named, "kubeconfigSecret": named},
        {"clusterProfile": named, "self": True},
        {"clusterProfile": {**named, "name": ""}},
    ]
    for spec in specs:
        target = {"metadata": {"name": "ambiguous"}, "spec": spec}
        with pytest.raises(Invalid):
            await inventoried.source.create(kinds.CLUSTER_TARGETS, target)
