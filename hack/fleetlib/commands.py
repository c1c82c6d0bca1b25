"""Builds the command lines and configuration files of a control plane. Pure.

Rates of the clients are far above Kubernetes' defaults: the fleet is a yardstick, and a client-side
limit would distort the measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.fleetlib import addresses

CLIENT_QPS, CLIENT_BURST = 2000, 4000
_OPEN_PATHS = "/healthz,/readyz,/livez,/metrics"


@dataclass(frozen=True, slots=True)
class ClusterSite:
    """Where a cluster is: its name, folder, and addresses."""

    name: str
    folder: Path
    address: str
    etcd: str
    pod_range: str
    agents: tuple[str, ...]
    """The addresses of its agents, as many as it has; the first is that of the cluster."""
    service: str
    """The address at which all agents are reached; that of the only one, if there is one."""
    nodes: tuple[str, ...]
    """The addresses of its real nodes, whether it has them or not."""

    def pki(self, file: str) -> str:
        return str(self.folder / "pki" / file)

    def file(self, file: str) -> str:
        return str(self.folder / file)

    def node_name(self, number: int = 0) -> str:
        """Return the name of a real node, counted from 0."""
        return f"{self.name}-real" + (f"-{number + 1}" if number else "")

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, beside the cluster's folder."""
        return self.folder.parent / f"kubeconfig-{self.name}"


def etcd(site: ClusterSite, binary: Path) -> list[str]:
    client = f"http://{site.etcd}:{addresses.ETCD_CLIENT}"
    peer = f"http://{site.etcd}:{addresses.ETCD_PEER}"
    return [
        str(binary),
        f"--name={site.name}",
        f"--data-dir={site.file('etcd')}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster={site.name}={peer}",
        # Nothing here has to survive a crash of the machine, and disks of CI machines are slow.
        "--unsafe-no-fsync",
        "--quota-backend-bytes=4294967296",
        "--log-level=warn",
    ]


def api_server(site: ClusterSite, binary: Path, extra: tuple[str, ...] = ()) -> list[str]:
    return [
        str(binary),
        f"--etcd-servers=http://{site.etcd}:{addresses.ETCD_CLIENT}",
        f"--bind-address={site.address}",
        f"--advertise-address={site.address}",
        f"--secure-port={addresses.API_SERVER}",
        f"--tls-cert-file={site.pki('apiserver.crt')}",
        f"--tls-private-key-file={site.pki('apiserver.key')}",
        f"--client-ca-file={site.pki('ca.crt')}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={site.pki('service-accounts.pub')}",
        f"--service-account-signing-key-file={site.pki('service-accounts.key')}",
        f"--service-cluster-ip-range={addresses.SERVICE_RANGE}",
        f"--kubelet-client-certificate={site.pki('apiserver-kubelet-client.crt')}",
        f"--kubelet-client-key={site.pki('apiserver-kubelet-client.key')}",
        # The default tries host names first, which no DNS here knows: seconds for each request.
        "--kubelet-preferred-address-types=InternalIP",
        "--enable-aggregator-routing=true",
        f"--requestheader-client-ca-file={site.pki('front-proxy-ca.crt')}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={site.pki('front-proxy-client.crt')}",
        f"--proxy-client-key-file={site.pki('front-proxy-client.key')}",
        "--allow-privileged=true",
        # There is no Service network, and loopback addresses would be refused as endpoints.
        "--endpoint-reconciler-type=none",
        "--max-requests-inflight=1200",
        "--max-mutating-requests-inflight=600",
        *(argument.replace("{folder}", str(site.folder)) for argument in extra),
    ]


def controller_manager(site: ClusterSite, binary: Path, extra: tuple[str, ...] = ()) -> list[str]:
    return [
        str(binary),
        *_serving(site, "controller-manager", addresses.CONTROLLER_MANAGER),
        f"--kubeconfig={site.file('controller-manager.kubeconfig')}",
        f"--client-ca-file={site.pki('ca.crt')}",
        f"--requestheader-client-ca-file={site.pki('front-proxy-ca.crt')}",
        f"--root-ca-file={site.pki('ca.crt')}",
        f"--cluster-signing-cert-file={site.pki('ca.crt')}",
        f"--cluster-signing-key-file={site.pki('ca.key')}",
        f"--service-account-private-key-file={site.pki('service-accounts.key')}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        f"--kube-api-qps={CLIENT_QPS}",
        f"--kube-api-burst={CLIENT_BURST}",
        *extra,
    ]


def scheduler(
    site: ClusterSite, binary: Path, config: str, port: int, extra: tuple[str, ...] = ()
) -> list[str]:
    return [str(binary), *_serving(site, "scheduler", port), f"--config={config}", *extra]


def _serving(site: ClusterSite, user: str, port: int) -> list[str]:
    kubeconfig = site.file(f"{user}.kubeconfig")
    return [
        f"--bind-address={site.address}",
        f"--secure-port={port}",
        f"--tls-cert-file={site.pki(f'{user}.crt')}",
        f"--tls-private-key-file={site.pki(f'{user}.key')}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--authorization-always-allow-paths={_OPEN_PATHS}",
    ]


def scheduler_config(kubeconfig: str) -> dict[str, Any]:
    """Return the stock scheduler, apart from its client's rates."""
    return tuned(
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"},
        kubeconfig,
    )


def tuned(config: dict[str, Any], kubeconfig: str) -> dict[str, Any]:
    """Return a scheduler's configuration without leader election and without a slow client."""
    connection = {
        "kubeconfig": kubeconfig,
        **config.get("clientConnection", {}),
        "qps": CLIENT_QPS,
        "burst": CLIENT_BURST,
    }
    return {**config, "leaderElection": {"leaderElect": False}, "clientConnection": connection}


def kwok(site: ClusterSite, binary: Path) -> list[str]:
    return [
        str(binary),
        f"--kubeconfig={site.file('kwok.kubeconfig')}",
        f"--config={site.file('kwok.yaml')}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        f"--node-ip={site.address}",
        f"--node-port={addresses.KWOK}",
        f"--server-address={site.address}:{addresses.KWOK}",
        f"--tls-cert-file={site.pki('kwok.crt')}",
        f"--tls-private-key-file={site.pki('kwok.key')}",
        f"--cidr={site.pod_range}",
        "--node-lease-duration-seconds=40",
    ]
