"""The add-on managed-serviceaccount of Open Cluster Management, as its own module has it.

Its agent makes the account of a ManagedServiceAccount in a member, and keeps a token of it on the
hub; its manager copies that token beside the member's ClusterProfile; its plugin reads the copy.
CRD and programs are unmodified. The rest of Open Cluster Management does not run: `Hub` writes
what its registration and cluster-proxy would. The first use on a machine builds the programs, which
takes two minutes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import yaml

from hack.fleetlib import agents, processes
from hack.fleetlib import inventory as profiles
from hack.fleetlib.commands import ClusterSite
from hack.fleetlib.fleet import LocalFleet
from hack.fleetlib.state import Process
from hack.fleetlib.tools import binaries, catalogue, gobuild
from tests import inventory, kit
from tests.kit import Fleet
from vnode.api import kinds
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

_GROUP: Final = "authentication.open-cluster-management.io"
ACCOUNTS: Final = Kind(_GROUP, "v1beta1", "managedserviceaccounts", "ManagedServiceAccount")
ADD_ON: Final = "open-cluster-management-agent-addon"
"""The namespace of the add-on in a member, where the accounts are."""
NAME: Final = "vnode"
"""Of the ManagedServiceAccount, and so of the account in the member."""
MANAGER: Final = "open-cluster-management"
"""Of profiles: their manager, and their provider."""


def get_programs() -> None:
    """Build the programs, if that is still to be done, before a fleet runs for nothing."""
    binaries.locate(["msa", "cp-creds"])


def crd() -> Object:
    """Return the CRD of ManagedServiceAccounts, unmodified."""
    bases = gobuild.source(catalogue.MANAGED_SERVICE_ACCOUNT_MODULE) / "config/crd/bases"
    found: Object = yaml.safe_load((bases / f"{_GROUP}_{ACCOUNTS.plural}.yaml").read_text())
    return found


def provider(place: ClusterSite) -> dict[str, Any]:
    """Return the setting of a hub's agent that has the plugin read copies of tokens."""
    plugin = binaries.locate(["cp-creds"])["cp-creds"]
    variables = {"KUBECONFIG": place.file("vnode.kubeconfig"), "NAMESPACE": profiles.NAMESPACE}
    run = {
        "command": str(plugin),
        "args": [f"--managed-serviceaccount={NAME}"],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "provideClusterInfo": True,
    }
    return {"name": MANAGER, "execConfig": run}


@dataclass(frozen=True)
class Hub:
    """The hub c1 with its member c2: the parts of the add-on, and what the rest would write."""

    fleet: Fleet
    source: Client
    target: Client

    async def begin(self) -> None:
        """Let the member join, and start the parts of the add-on; c1 has the CRD of profiles."""
        await self.source.create(kinds.CRDS, await asyncio.to_thread(crd))
        await kit.until_served(self.source, ACCOUNTS)
        await self.source.create(kinds.NAMESPACES, {"metadata": {"name": "c2"}})
        await self.target.create(kinds.NAMESPACES, {"metadata": {"name": ADD_ON}})
        await self._add_profile()
        await self.add_account()
        await asyncio.to_thread(self._start)

    async def _add_profile(self) -> None:
        """Write a profile as registration does, without the proxy in between."""
        place = LocalFleet(self.fleet.folder).site("c2")
        [direct] = profiles.status(place)["accessProviders"]
        status = {**profiles.status(place), "accessProviders": [{**direct, "name": MANAGER}]}
        labels = {
            "x-k8s.io/cluster-manager": MANAGER,
            "open-cluster-management.io/cluster-name": "c2",
        }
        await inventory.add_profile(self.source, profiles.NAMESPACE, "c2", status, **labels)

    async def add_account(self) -> None:
        """Make the ManagedServiceAccount of docs/inventory-ocm.md."""
        labels = {f"{_GROUP}/sync-to-clusterprofile": "true"}
        account = {
            "metadata": {"name": NAME, "namespace": "c2", "labels": labels},
            "spec": {"rotation": {"enabled": True, "validity": "720h"}},
        }
        await kit.until_served(self.source, ACCOUNTS)
        await self.source.create(ACCOUNTS, account, "c2")

    def _start(self) -> None:
        """Start the agent of the member, and of the manager what copies tokens."""
        program = str(binaries.locate(["msa"])["msa"])
        hub = str(self.fleet.kubeconfig("c1"))
        quiet = ["--metrics-bind-address=0", "--health-probe-bind-address=0"]
        spoke = f"--spoke-kubeconfig={self.fleet.kubeconfig('c2')}"
        agent = ["agent", "--cluster-name=c2", spoke, "--feature-gates=EphemeralIdentity=true"]
        # In this mode it needs nothing of OCM's add-on manager.
        manager = ["manager", "--deploy-mode=AddOnTemplate"]
        manager += ["--feature-gates=ClusterProfileCredSyncer=true"]
        environment = {"NAMESPACE": ADD_ON, "HUB_KUBECONFIG": hub}
        for cluster, words in (("c1", manager), ("c2", agent)):
            log = LocalFleet(self.fleet.folder).site(cluster).file(f"msa-{words[0]}.log")
            argv = [program, *words, f"--kubeconfig={hub}", *quiet]
            definition = Process(argv, log, environment)
            processes.start(self.fleet.folder, cluster, f"msa-{words[0]}", definition)


def start_hub(fleet: Fleet) -> None:
    """Run vnode in c1, with the CRD of profiles and the plugin of the add-on."""
    site = LocalFleet(fleet.folder)
    place = site.site("c1")
    agents.install(place)
    profiles.install(place)
    setting = {"namespaces": [profiles.NAMESPACE], "providers": [provider(place)]}
    agents.start_agents(fleet.folder, place, config={"inventory": setting})
    scheduler = binaries.locate(["kube-scheduler"])["kube-scheduler"]
    agents.start_candidate_scheduler(fleet.folder, place, scheduler)
