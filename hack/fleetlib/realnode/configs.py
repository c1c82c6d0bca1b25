"""The configuration files of a real node. Pure.

Settings that are not obvious are explained beside them; the rest are the programs' defaults.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from hack.fleetlib import addresses
from hack.fleetlib.realnode import images, packages, registry, services

if TYPE_CHECKING:
    from pathlib import Path

    from hack.fleetlib.commands import ClusterSite
    from hack.fleetlib.realnode.sites import RealNodeSite

# Away from 10250 and upwards, where the virtual nodes of the same cluster's agent are.
KUBELET_PORT: Final = 6250
_HEALTH_PORT: Final = 6248
_NO_DNS: Final = "10.96.0.10"
CONTAINERD_SOCKET: Final = "/run/containerd/containerd.sock"


def containerd(folder: Path) -> str:
    """Return the configuration of containerd 1.6 or 1.7.

    It has no registry but ours, and takes networks from `folder`.
    """
    return f"""version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = {_quoted(images.PAUSE)}
  # Without it a root without CAP_SYS_RESOURCE, as in a container, cannot start a pod.
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = {_quoted(str(packages.CNI_FOLDER))}
  conf_dir = {_quoted(str(folder / "net.d"))}
[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = {_quoted(str(folder / "certs.d"))}
"""


def _quoted(text: str) -> str:
    return json.dumps(text)


def registry_hosts() -> str:
    """Return the hosts.toml that sends containerd to our registry for all images."""
    url = f"http://127.0.0.1:{registry.PORT}"
    return f'server = "{url}"\n[host."{url}"]\n  capabilities = ["pull", "resolve"]\n'


def network(pod_range: str) -> dict[str, Any]:
    """Return a bridge for the pods."""
    addressing = {
        "type": "host-local",
        "ranges": [[{"subnet": pod_range}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": addressing,
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]}


def firewall(place: ClusterSite) -> str:
    """Return nft rules: the API server's Service works without kube-proxy, others refuse.

    Pods of a cluster reach each other by their own addresses, and all else by the node's.
    """
    server = f"{place.address}:{addresses.API_SERVER}"
    rule = f"ip daddr {addresses.FIRST_SERVICE} tcp dport 443 dnat to {server}"
    return f"""flush ruleset
table ip node {{
  chain arriving {{ type nat hook prerouting priority -100; {rule}; }}
  chain leaving {{ type nat hook output priority -100; {rule}; }}
  chain passing {{
    type filter hook forward priority 0;
    ip daddr {addresses.SERVICE_RANGE} reject;
  }}
  chain passed {{
    type nat hook postrouting priority 100;
    ip saddr {place.pod_range} ip daddr != {place.pod_range} masquerade;
  }}
}}
"""


def kubelet(node: RealNodeSite, *, names: bool = False) -> dict[str, Any]:
    """Return the KubeletConfiguration; with `names`, pods ask the cluster's DNS (`services`)."""
    place = node.cluster
    authentication = {
        "anonymous": {"enabled": False},
        "webhook": {"enabled": True},
        "x509": {"clientCAFile": place.pki("ca.crt")},
    }
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "port": KUBELET_PORT,
        "healthzPort": _HEALTH_PORT,
        "authentication": authentication,
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": place.pki(f"{node.name}.crt"),
        "tlsPrivateKeyFile": place.pki(f"{node.name}.key"),
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        # No names of the machine's: an empty file. Without an address every pod gets a warning.
        "resolvConf": str(node.folder / "resolv.conf"),
        "clusterDNS": [place.address if names else _NO_DNS],
        "clusterDomain": services.DOMAIN,
        # The machine's disk is not ours: how full it is must not evict pods or delete images.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%"},
        "serializeImagePulls": False,
        "registryPullQPS": 0,  # the registry is ours: pods that start at once need not wait for it
    }


def kubelet_flags(node: RealNodeSite) -> list[str]:
    """Return the flags that have no field in the file."""
    return [
        f"--config={node.folder / 'kubelet.yaml'}",
        f"--kubeconfig={node.cluster.file(f'{node.name}.kubeconfig')}",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
    ]
