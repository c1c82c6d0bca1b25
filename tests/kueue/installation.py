"""Kueue, as its own module has it: CRDs, webhooks and program, unmodified.

The program runs beside the API server of its cluster, not in it, so webhooks are called by URL and
trust a certificate that is made here. Kinds that no CRD serves are left out. The first use on a
machine builds the program, which takes a quarter of an hour.
"""

from __future__ import annotations

import base64
import http.client
import json
import shlex
from pathlib import Path
from typing import Any, Final

import yaml

from hack.fleetlib import certificates, clusters, processes
from hack.fleetlib.commands import ClusterSite
from hack.fleetlib.fleet import LocalFleet
from hack.fleetlib.state import Process
from hack.fleetlib.tools import binaries, catalogue, gobuild
from tests.kit import Fleet
from vnode.api.objects import Object

NAMESPACE: Final = "kueue-system"
_PROGRAM: Final = "kueue"
_WEBHOOKS, _HEALTH = 6301, 6302  # ports of the cluster's address that nothing else has
_FRAMEWORKS: Final = {
    "job": "batch/job",
    "pod": "pod",
    "deployment": "deployment",
    "jobset": "jobset.x-k8s.io/jobset",
}
"""By the kind that it works with, as paths of webhooks have it."""
_OWN_KINDS: Final = ("clusterqueue", "cohort", "resourceflavor", "workload")
_SYSTEM: Final = ("kube-system", NAMESPACE)
# Where it looks for the certificate of its metrics, whatever its configuration says.
_METRICS_CERTIFICATE: Final = Path("kueue/metrics/certs")


def get_program() -> Path:
    """Build Kueue, if that is still to be done, before a fleet runs for nothing."""
    return binaries.locate([_PROGRAM])[_PROGRAM]


def install(fleet: Fleet, cluster: str, kinds: tuple[str, ...]) -> None:
    """Install Kueue in a cluster and start it, for jobs of these kinds; wait until it works."""
    components = gobuild.source(catalogue.KUEUE_MODULE) / "config/components"
    crds = str(components / "crd/bases")
    fleet.kubectl(cluster, "create", "namespace", NAMESPACE)
    fleet.kubectl(cluster, "create", "-f", crds)
    fleet.kubectl(cluster, "wait", "--for=condition=Established", "-f", crds)
    place = LocalFleet(fleet.folder).site(cluster)
    authority = _write_certificates(place)
    _start(fleet, place, kinds)
    for hooks in yaml.safe_load_all((components / "webhook/manifests.yaml").read_text()):
        made = webhooks(hooks, f"https://{place.address}:{_WEBHOOKS}", authority, kinds)
        fleet.kubectl(cluster, "create", "-f", "-", input=json.dumps(made))


def webhooks(hooks: Object, url: str, authority: bytes, kinds: tuple[str, ...]) -> Object:
    """Return a webhook configuration of Kueue with URLs, and with these kinds of jobs only."""
    bundle = base64.b64encode(authority).decode()
    elsewhere = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [*_SYSTEM]}
    selector = {"namespaceSelector": {"matchExpressions": [elsewhere]}}
    found = []
    for hook in hooks["webhooks"]:
        path = hook["clientConfig"]["service"]["path"]
        kind = path.rpartition("-")[2]
        if kind in (*kinds, *_OWN_KINDS):
            called = {"url": url + path, "caBundle": bundle}
            found.append({**hook, **(selector if kind in kinds else {}), "clientConfig": called})

    return {**hooks, "metadata": {"name": f"kueue-{hooks['metadata']['name']}"}, "webhooks": found}


def _write_certificates(place: ClusterSite) -> bytes:
    """Write Kueue's certificates into the cluster's folder; return the authority's."""
    authority = certificates.authority("kueue")
    pair = authority.server("kueue", [place.address])
    for folder in (_folder(place) / "webhooks", _folder(place) / "etc" / _METRICS_CERTIFICATE):
        folder.mkdir(parents=True)
        certificates.write_pair(folder, "tls", pair)

    return authority.pair.certificate_pem


def _folder(place: ClusterSite) -> Path:
    return Path(place.file("kueue"))


def _configuration(place: ClusterSite, kinds: tuple[str, ...]) -> dict[str, Any]:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"{place.address}:{_HEALTH}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {
            "host": place.address,
            "port": _WEBHOOKS,
            "certDir": str(_folder(place) / "webhooks"),
        },
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        # It is an API server of its own, which pods of the cluster would reach by a Service.
        "featureGates": {"VisibilityOnDemand": False},
        "integrations": {"frameworks": [_FRAMEWORKS[kind] for kind in kinds]},
    }


def _start(fleet: Fleet, place: ClusterSite, kinds: tuple[str, ...]) -> None:
    config = _folder(place) / "config.yaml"
    config.write_text(yaml.safe_dump(_configuration(place, kinds)))
    # Its own view of /etc, so that nothing is left on the machine.
    layers = f"lowerdir={_folder(place) / 'etc'}:/etc"
    view = shlex.join(["mount", "-t", "overlay", "overlay", "-o", layers, "/etc"])
    run = shlex.join([str(get_program()), f"--config={config}"])
    argv = ["unshare", "--mount", "sh", "-c", f"{view} && exec {run}"]
    environment = {"KUBECONFIG": str(fleet.kubeconfig(place.name))}
    definition = Process(argv, place.file("kueue.log"), environment)
    processes.start(fleet.folder, place.name, _PROGRAM, definition)
    clusters.until(fleet.folder, place.name, _PROGRAM, lambda: _is_ready(place.address))


def _is_ready(address: str) -> bool:
    connection = http.client.HTTPConnection(address, _HEALTH, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
