"""Configures kube-proxy and CoreDNS, so that Services and their names work on a real node.

Got only when asked for (`hack/fleet up ... --services`), because most tests need neither. Both run
beside the kubelet, in the network of the cluster. Pure.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from hack.fleetlib import addresses

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hack.fleetlib.commands import ClusterSite

KUBE_PROXY: Final = "kube-proxy"
COREDNS: Final = "coredns"
PROGRAMS: Final = (KUBE_PROXY, COREDNS)
DOMAIN: Final = "cluster.local"
_REVERSE: Final = "in-addr.arpa"
# Away from 10250 and upwards, where the virtual nodes of the same cluster's agent are.
_PROXY_HEALTH, _PROXY_METRICS = 6255, 6249


def files(place: ClusterSite, pods: str, node: str) -> dict[str, str]:
    """Return the configuration files of kube-proxy and CoreDNS, by name.

    `pods` is the range of the pods' addresses. kube-proxy's file holds JSON, because JSON is YAML.
    """
    return {"kube-proxy.yaml": json.dumps(_kube_proxy(place, pods, node)), "Corefile": _dns(place)}


def commands(folder: Path, programs: Mapping[str, Path]) -> dict[str, list[str]]:
    """Return the command lines of both; `folder` has the files of `files`."""
    return {
        KUBE_PROXY: [str(programs[KUBE_PROXY]), f"--config={folder / 'kube-proxy.yaml'}"],
        COREDNS: [str(programs[COREDNS]), f"-conf={folder / 'Corefile'}"],
    }


def _kube_proxy(place: ClusterSite, pods: str, node: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": place.file("kube-proxy.kubeconfig")},
        "hostnameOverride": node,
        "mode": "nftables",
        "detectLocalMode": "ClusterCIDR",
        "clusterCIDR": pods,
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
        "healthzBindAddress": f"{place.address}:{_PROXY_HEALTH}",
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
