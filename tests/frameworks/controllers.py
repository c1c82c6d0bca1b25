"""Runs a controller of jobs outside of its cluster, unmodified, with its CRDs and webhooks.

It runs beside the API server, not in a pod, so its webhooks are called by URL, and trust a
certificate that is made here.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from hack.fleetlib import agents, certificates, clusters, networks, processes
from hack.fleetlib.api import Api, condition
from hack.fleetlib.commands import ClusterSite
from hack.fleetlib.fleet import LocalFleet
from hack.fleetlib.state import Process
from hack.fleetlib.tools import binaries, gobuild
from hack.fleetlib.tools.definitions import Module
from tests.kit import PATIENCE, Fleet
from vnode.api.objects import Object

_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def create_crds(fleet: Fleet, cluster: str, module: Module, pattern: str) -> None:
    """Create the CRDs in some files of a module, and wait until they are served."""
    api = Api(LocalFleet(fleet.folder).site(cluster).kubeconfig)
    files = sorted(gobuild.source(module).glob(pattern))
    crds = [crd for file in files for crd in yaml.safe_load_all(file.read_text()) if crd]
    for crd in crds:
        api.call("POST", _CRDS, crd)

    def are_served(found: dict[str, Object]) -> bool:
        kinds = [found.get(crd["metadata"]["name"]) for crd in crds]
        return all(condition(kind, "Established").get("status") == "True" for kind in kinds)

    api.wait(_CRDS, are_served, PATIENCE)


@dataclass(frozen=True, kw_only=True)
class JobController:
    """A controller with its module; ports are of the cluster's address, that nothing else has."""

    program: str
    module: Module
    health_port: int
    health_path: str = "/readyz"
    crds: str = "config/crd/bases/*.yaml"
    flags: Callable[[str], list[str]] = lambda _address: []
    """Returns its flags in a cluster with that address."""
    has_own_network: bool = False
    """It has to listen on a port of the agent's: it gets the network of a second real node."""

    def locate(self) -> Path:
        """Build the program, if that is still to be done, before a fleet runs for nothing."""
        return binaries.locate([self.program])[self.program]

    def serve_kinds(self, fleet: Fleet, cluster: str) -> None:
        """Create the CRDs, and wait until they are served."""
        create_crds(fleet, cluster, self.module, self.crds)

    def remove_kinds(self, fleet: Fleet, cluster: str) -> None:
        """Delete the CRDs again."""
        files = sorted(gobuild.source(self.module).glob(self.crds))
        fleet.kubectl(cluster, "delete", *(f"--filename={file}" for file in files))

    def start(self, fleet: Fleet, cluster: str) -> None:
        """Start the program, and wait until it works."""
        place = LocalFleet(fleet.folder).site(cluster)
        self._run(fleet, place, [str(self.locate()), *self.flags(place.address)])

    def _run(self, fleet: Fleet, place: ClusterSite, argv: list[str], **environment: str) -> None:
        environment.setdefault("KUBECONFIG", str(fleet.kubeconfig(place.name)))
        definition = Process(argv, place.file(f"{self.program}.log"), environment)
        address = place.address
        if self.has_own_network:
            local = LocalFleet(fleet.folder)
            known, nodes = local.state(), [local.real_node(place.name, n) for n in (0, 1)]
            index = known.cluster(place.name).index
            networks.add_node(known.plan, index, [node.pod_range for node in nodes])
            definition.netns, address = nodes[1].netns, nodes[1].address

        processes.start(fleet.folder, place.name, self.program, definition)
        health = (address, self.health_port, self.health_path)
        clusters.until(fleet.folder, place.name, self.program, lambda: agents.answers(*health))


@dataclass(frozen=True, kw_only=True)
class WebhookController(JobController):
    """A controller that has webhooks, and a file with its configuration.

    `selectors` returns what is added to a webhook of that path, None to leave the webhook out.
    `argv` returns the command that runs the program with a configuration.
    """

    configuration: Mapping[str, Any]
    webhook_port: int
    selectors: Callable[[str], Object | None] = lambda _path: {}
    argv: Callable[[list[str], Path], list[str]] = lambda run, _folder: run
    webhooks: str = "config/webhook/manifests.yaml"
    certificates: Iterable[str] = field(default=("webhooks",))
    """The folders that get the certificate."""

    def start(self, fleet: Fleet, cluster: str) -> None:
        """Start the program, wait until it works, then have its webhooks called."""
        place = LocalFleet(fleet.folder).site(cluster)
        folder = Path(place.file(self.program))
        authority = self._write_certificates(place, folder)
        config = folder / "config.yaml"
        config.write_text(yaml.safe_dump(self._configured(place, folder)))
        argv = self.argv([str(self.locate()), f"--config={config}"], folder)
        self._run(fleet, place, argv, TMPDIR=str(folder))
        manifests = (gobuild.source(self.module) / self.webhooks).read_text()
        for hooks in yaml.safe_load_all(manifests):
            made = self._called(hooks, f"https://{place.address}:{self.webhook_port}", authority)
            fleet.kubectl(cluster, "create", "-f", "-", input=json.dumps(made))

    def _write_certificates(self, place: ClusterSite, folder: Path) -> bytes:
        authority = certificates.authority(self.program)
        pair = authority.server(self.program, [place.address])
        for each in self.certificates:
            (folder / each).mkdir(parents=True)
            certificates.write_pair(folder / each, "tls", pair)

        return authority.pair.certificate_pem

    def _configured(self, place: ClusterSite, folder: Path) -> dict[str, Any]:
        """Return the configuration, whose own values replace those that all have."""
        return {
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": f"{place.address}:{self.health_port}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {
                "host": place.address,
                "port": self.webhook_port,
                "certDir": str(folder / "webhooks"),
            },
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            **self.configuration,
        }

    def _called(self, hooks: Object, url: str, authority: bytes) -> Object:
        """Return a webhook configuration with URLs in place of a Service."""
        bundle = base64.b64encode(authority).decode()
        found = []
        for hook in hooks["webhooks"]:
            path = hook["clientConfig"]["service"]["path"]
            selectors = self.selectors(path)
            if selectors is not None:
                called = {"url": url + path, "caBundle": bundle}
                found.append({**hook, **selectors, "clientConfig": called})

        name = f"{self.program}-{hooks['metadata']['name']}"
        return {**hooks, "metadata": {"name": name}, "webhooks": found}
