"""Values that cannot work, by words of the refusal."""

from __future__ import annotations

from typing import Final

from tests.chart.matrix import DIGEST
from vnode.api.objects import Object

REFUSED: Final[dict[str, Object]] = {
    "ports.kubelet, e.g. to 11250": {"controllerManager": {"hostNetwork": True}},
    "config.ports.kubelet and webhook are both 9443: give each its own": {
        "controllerManager": {"config": {"ports": {"kubelet": 9443}}}
    },
    "leave out controllerManager.config.sourceController, which it sets": {
        "controllerManager": {"config": {"sourceController": True}},
        "sourceController": {"enabled": False},
    },
    "minAvailable 2 lets none of the 2 replicas of scheduler be evicted": {
        "controllerManager": {"replicas": 3},
        "podDisruptionBudget": {"minAvailable": 2},
    },
    "minAvailable 100% lets none": {"podDisruptionBudget": {"minAvailable": "100%"}},
    "set webhook.url": {"debug": {"controllerManager": True}},
    "is Admiralty's image": {
        "controllerManager": {"image": {"repository": "example.com/admiralty-agent"}}
    },
    "name an upstream kube-scheduler": {
        "scheduler": {"image": {"repository": "example.com/admiralty-scheduler"}}
    },
    "controllerManager.config.kind is the chart's": {
        "controllerManager": {"config": {"kind": "AgentConfiguration"}}
    },
    "config.namespaces would not change the agent's rights": {
        "controllerManager": {"config": {"namespaces": ["default"]}}
    },
    "namespaces has vnode, the agent's own": {"namespaces": ["vnode"]},
    "targetSets need rights in all namespaces": {
        "namespaces": ["default"],
        "targetSets": {"enabled": True},
    },
    "namespaces/0": {"namespaces": ["Team"]},
    "extraVolumes has tmp": {"controllerManager": {"extraVolumes": [{"name": "tmp"}]}},
    "mounts the volume plugins, which is not there": {
        "controllerManager": {"extraVolumeMounts": [{"name": "plugins", "mountPath": "/plugins"}]}
    },
    "mounts the volume bin, which is not there": {
        "controllerManager": {
            "initContainers": [
                {"name": "a", "image": "b", "volumeMounts": [{"name": "bin", "mountPath": "/c"}]}
            ]
        }
    },
    "mountPath": {"controllerManager": {"extraVolumeMounts": [{"name": "config"}]}},
    "replica": {"controllerManager": {"replica": 2}},
    "streamGracePeriodSeconds": {
        "controllerManager": {"config": {"streamGracePeriodSeconds": 100000}}
    },
    "reinvocationPolicy": {"webhook": {"reinvocationPolicy": "Sometimes"}},
    "clusterName": {"clusterName": "no spaces"},
    "scheduler.image names a digest in its tag": {
        "scheduler": {"image": {"tag": f"v1@{DIGEST}", "digest": DIGEST}}
    },
    "digest": {"controllerManager": {"image": {"digest": "sha256:short"}}},
    "imageRegistry": {"global": {"imageRegistry": "https://mirror.example.com"}},
    "imagePullSecrets/0": {"imagePullSecrets": ["ours"]},
    "dashboard.ingress leads to the dashboard, which agents do not serve": {
        "dashboard": {"ingress": {"enabled": True}}
    },
    "name one in dashboard.httpRoute.parentRefs": {
        "controllerManager": {"config": {"ports": {"dashboard": 9445}}},
        "dashboard": {"httpRoute": {"enabled": True}},
    },
    "backend": {"dashboard": {"ingress": {"backend": {"name": "proxy"}}}},
    "serviceAccount": {"controllerManager": {"serviceAccount": {"name": "own"}}},
    "additional properties 'bogus' not allowed": {"controllerManager": {"config": {"bogus": 1}}},
    "additional properties 'delay' not allowed": {
        "controllerManager": {"config": {"candidates": {"delay": 1}}}
    },
    "additional properties 'arguments' not allowed": {
        "controllerManager": {
            "config": {
                "inventory": {
                    "providers": [{"name": "p", "execConfig": {"command": "c", "arguments": []}}]
                }
            }
        }
    },
    "set controllerManager.certManager.issuerRef.name": {
        "controllerManager": {"certManager": {"ipAddresses": ["192.0.2.7"]}}
    },
    "approve is for requests of agents": {
        "controllerManager": {
            "certManager": {
                "issuerRef": {"name": "company"},
                "ipAddresses": ["192.0.2.7"],
                "approve": True,
            }
        }
    },
    "the kubelet API has one certificate": {
        "controllerManager": {
            "certificateSignerName": "kubernetes.io/kubelet-serving",
            "certManager": {"issuerRef": {"name": "company"}},
        }
    },
    "certManager/issuerRef": {
        "controllerManager": {"certManager": {"issuerRef": {"kind": "Issuer"}}}
    },
}
