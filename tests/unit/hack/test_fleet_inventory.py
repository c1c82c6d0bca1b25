"""The profiles of a fleet lead vnode to their clusters, with the plugin's credentials."""

from __future__ import annotations

from hack.fleetlib import certificates, inventory, kubeconfigs
from hack.fleetlib.commands import ClusterSite
from vnode.targets.profiles import resolving
from vnode.targets.profiles.config import AccessProvider, ExecConfig, InventoryConfig


def test_a_profile_leads_to_its_cluster_by_the_plugin(tmp_path):
    authority = certificates.authority("c2")
    pair = authority.server("c2", ["127.0.0.1"])
    folder = tmp_path / "c2"
    site = ClusterSite("c2", folder, "127.0.0.1", "", "", (), "", ())
    site.kubeconfig.write_text(kubeconfigs.render("c2", "127.0.0.1", "admin", authority, pair))
    profile = {**inventory.profile("c2"), "status": inventory.status(site)}
    plugin = ExecConfig("/plugin", provide_cluster_info=True)
    config = InventoryConfig((inventory.NAMESPACE,), (AccessProvider(inventory.PLUGIN, plugin),))
    access = resolving.resolve(profile, config, {})
    assert access.provider == inventory.PLUGIN
    assert access.cluster["server"].startswith("https://127.0.0.1:")
    shown = access.plugin.cluster
    assert shown is not None
    assert shown["config"] == {"clusterName": "c2"}
