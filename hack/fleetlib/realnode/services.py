"""Configures kube-proxy and CoreDNS, so that Services and their names work on a real node.

Got only when asked for (`hack/fleet up ... --services`), because most tests need neither. Each node
has kube-proxy, the first of a cluster CoreDNS besides. Pure.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from hack.fleetlib import addresses

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hack.fleetlib.commands import ClusterSite
    from hack.fleetlib.realnode.sites import RealNodeSite

KUBE_PROXY: Final = "kube-proxy"
COREDNS: Final = "coredns"
PROGRAMS: Final = (KUBE_PROXY, COREDNS)
DOMAIN: Final = "cluster.local"
_REVERSE: Final = "in-addr.arpa"
# Where Kubernetes' own suite asks. The agent of the same cluster has its virtual nodes at 10250 and
# upwards, so there is room for six of them.
_PROXY_HEALTH, _PROXY_METRICS = 10256, 10249


def files(node: RealNodeSite) -> dict[str, str]:
    """Return the configuration files of kube-proxy and CoreDNS, by name.

    kube-proxy's file holds JSON, because JSON is YAML.
    """
    return {"kube-proxy.yaml": json.dumps(_kube_proxy(node)), "Corefile": _dns(node.cluster)}


def commands(node: RealNodeSite, programs: Mapping[str, Path]) -> dict[str, list[str]]:
    """Return the command lines of what runs there; its folder has the files of `files`."""
    proxy = [str(programs[KUBE_PROXY]), f"--config={node.folder / 'kube-proxy.yaml'}"]
    names = [str(programs[COREDNS]), f"-conf={node.folder / 'Corefile'}"]
    return {KUBE_PROXY: proxy} | ({} if node.number else {COREDNS: names})


def _kube_proxy(node: RealNodeSite) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": node.cluster.file("kube-proxy.kubeconfig")},
        "hostnameOverride": node.name,
        "mode": "nftables",
        "detectLocalMode": "ClusterCIDR",
        "clusterCIDR": node.pod_range,
        # A bridge hands the answer of one pod to another without asking the firewall, which would
        # have to put the Service's address back. So pods are made to answer the node.
        "nftables": {"masqueradeAll": True},
        # Limits of the whole machine, which are not ours to set.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
        "healthzBindAddress": f"0.0.0.0:{_PROXY_HEALTH}",
        "metricsBindAddress": f"127.0.0.1:{_PROXY_METRICS}",
    }


def _dns(place: ClusterSite) -> str:
    """Build a Corefile for names and addresses of the cluster; others get REFUSED at once."""
    return f"""{DOMAIN}:{addresses.DNS} {_REVERSE}:{addresses.DNS} {{
  bind {place.address}
  errors
  kubernetes {DOMAIN} {_REVERSE} {{
    kubeconfig {place.file("coredns.kubeconfig")}
    ttl 0
  }}
}}
"""
