"""A plugin that hangs for one cluster of an inventory holds up the Target of that cluster alone."""

from __future__ import annotations

from pathlib import Path

from tests import inventory, kit
from tests.integration.inventoried import Inventoried, inventoried
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.targets.profiles.config import AccessProvider, ExecConfig, InventoryConfig

__all__ = ["inventoried"]

GOOD = 19
_PLUGIN = """#!/bin/sh
case "$KUBERNETES_EXEC_INFO" in *'"hangs":true'*) sleep 600 ;; esac
exec "$0-works"
"""


def use_plugin(inventoried: Inventoried, folder: Path) -> None:
    """Have all clusters served by one command, which hangs for those that say so."""
    works = inventoried.config.providers[-1].exec_config
    plugin = folder / "plugin"
    plugin.write_text(_PLUGIN)
    plugin.chmod(0o755)
    (folder / "plugin-works").symlink_to(works.command)
    config = ExecConfig(str(plugin), env=works.env, provide_cluster_info=True)
    provider = AccessProvider("secretreader", config)
    inventoried.config = InventoryConfig((inventoried.namespace,), (provider,))


def status(inventoried: Inventoried, *, hangs: bool) -> Object:
    extension = {
        "name": inventory.EXTENSION,
        "extension": {"clusterName": "c2", "hangs": hangs},
    }
    cluster = {**inventoried.access["cluster"], "extensions": [extension]}
    return {"accessProviders": [{"name": "secretreader", "cluster": cluster}]}


async def test_nineteen_targets_are_ready_while_the_plugin_hangs_for_one(
    inventoried: Inventoried, tmp_path: Path
) -> None:
    use_plugin(inventoried, tmp_path)
    await inventory.installed(inventoried.source)
    await inventoried.add("hangs", status(inventoried, hangs=True))
    names = {f"good-{number}" for number in range(GOOD)}
    for name in names:
        await inventoried.add(name, status(inventoried, hangs=False))

    async with inventoried.agent():
        await kit.until(
            *(inventoried.source, kinds.CLUSTER_TARGETS),
            lambda all_: {name for name, target in all_.items() if kit.is_ready(target)} == names,
        )
        found = await inventoried.until_reason("hangs", "PluginFailed")
        condition = objects.condition(found, "Ready") or {}
        assert condition["status"] == "False"
        assert "gave no answer within 10 s" in condition["message"]
        assert all(inventoried.link(name).health.healthy for name in names)
