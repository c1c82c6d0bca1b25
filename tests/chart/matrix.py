"""The values that the chart is rendered with: what operators choose."""

from __future__ import annotations

from typing import Final

from vnode.api.objects import Object

_MONITORING: Final = {
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "podMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True},
    "dashboard": {"enabled": True},
}

NAMESPACE: Final = "rendered"
DIGEST: Final = f"sha256:{'a1' * 32}"

MATRIX: Final[dict[str, Object]] = {
    "defaults": {},
    "named": {"nameOverride": "bridge", "fullnameOverride": "bridge", "clusterName": "c1"},
    "one replica": {"controllerManager": {"replicas": 1}, "scheduler": {"replicas": 1}},
    "no budgets": {"podDisruptionBudget": None},
    "no streams": {"controllerManager": {"config": {"ports": {"streams": 0}}}},
    "source only": {"scheduler": {"enabled": False}},
    "no sources": {"sourceController": {"enabled": False}},
    "named namespaces": {"namespaces": ["default", "kube-public"]},
    "named namespaces and all that is optional": {
        "selfTargets": {"enabled": True},
        "namespaces": ["default"],
        "scheduler": {"enabled": False},
        "issuing": {"enabled": True, "namespaces": ["default"]},
        "decisions": {"follow": True, "publish": True},
    },
    "issuing": {"issuing": {"enabled": True, "namespaces": ["default"]}},
    "decisions": {"decisions": {"follow": True, "publish": True}},
    "target sets": {
        "targetSets": {"enabled": True},
        "controllerManager": {"config": {"inventory": {"namespaces": ["fleet"]}}},
    },
    "managed clusters": {
        "managedClusterTaints": {"enabled": True},
        "controllerManager": {"config": {"inventory": {"managedClusterTaints": True}}},
    },
    "kueue": {
        "kueue": {"enabled": True, "multiKueue": True},
        "controllerManager": {
            "config": {
                "kueue": {
                    "placementCheck": True,
                    "multiKueue": [{"name": "clouds", "targets": ["berlin"]}],
                }
            }
        },
    },
    "scores": {
        "scores": {"read": True, "publish": True},
        "controllerManager": {
            "config": {
                "scores": {"publish": ["AddOnPlacementScore", "ClusterScore"]},
                "scheduling": {
                    "profile": {
                        "plugins": {"enabled": [{"name": "ClusterScores", "weight": 10}]},
                        "pluginConfig": [
                            {
                                "name": "ClusterScores",
                                "args": {"scores": [{"source": "ClusterScore", "name": "price"}]},
                            }
                        ],
                    }
                },
            }
        },
    },
    "agent elsewhere": {
        "debug": {"controllerManager": True, "candidateScheduler": True},
        "webhook": {"url": "https://192.0.2.1:9443/", "reinvocationPolicy": "IfNeeded"},
    },
    "host network": {
        "controllerManager": {"hostNetwork": True, "config": {"ports": {"kubelet": 11250}}}
    },
    "CRDs from elsewhere": {"crds": {"install": False}},
    "CRDs that go": {"crds": {"keep": False}},
    "monitored": {"monitoring": _MONITORING},
    "closed": {
        "networkPolicy": {
            "apiServer": [{"ipBlock": {"cidr": "192.0.2.0/24"}}],
            "monitoring": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
        }
    },
    "no network policies": {"networkPolicy": {"enabled": False}},
    "egress": {
        "networkPolicy": {
            "egress": [
                {"ipBlock": {"cidr": "192.0.2.0/24"}},
                {"namespaceSelector": {"matchLabels": {"name": "kube-system"}}},
            ]
        },
        "controllerManager": {"config": {"ports": {"dashboard": 9446}}},
    },
    "self targets": {"selfTargets": {"enabled": True}},
    "no policies": {"admissionPolicies": {"enabled": False}},
    "placed": {
        part: {
            "nodeSelector": {"disk": "fast"},
            "tolerations": [{"operator": "Exists"}],
            "affinity": {"podAntiAffinity": {}},
            "securityContext": {"runAsUser": 1000, "supplementalGroups": [7]},
            "podAnnotations": {"a": "b"},
            "podLabels": {"c": "d"},
            "priorityClassName": "",
            "image": {"repository": "example.com/mirror/x", "tag": "v9", "pullPolicy": "Always"},
        }
        for part in ("controllerManager", "scheduler")
    },
    "configured": {
        "imagePullSecretName": "registry",
        "controllerManager": {
            "config": {
                "candidates": {"parallel": 2},
                "tracing": {"endpoint": "http://collector:4318", "samplingRatio": 0.5},
                "execCommands": ["aws"],
                "streamGracePeriodSeconds": 3600,
                "targetsPerNamespace": 50,
                "ports": {"webhook": 8443, "extender": 8444, "health": 8081},
            },
            "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://192.0.2.9:3128"}],
        },
        "scheduler": {"config": {"parallelism": 4}},
    },
    "plugins": {
        "controllerManager": {
            "extraVolumes": [
                {"name": "plugins", "emptyDir": {}},
                {"name": "readers", "image": {"reference": "example.com/readers:1"}},
                {"name": "tokens", "secret": {"secretName": "tokens"}},
            ],
            "extraVolumeMounts": [
                {"name": "plugins", "mountPath": "/plugins", "readOnly": True},
                {"name": "readers", "mountPath": "/readers"},
                {"name": "tokens", "mountPath": "/tokens", "readOnly": True},
            ],
            "initContainers": [
                {
                    "name": "copy",
                    "image": "example.com/plugin:1",
                    "command": ["cp", "/plugin", "/plugins/"],
                    "volumeMounts": [{"name": "plugins", "mountPath": "/plugins"}],
                    "securityContext": {"readOnlyRootFilesystem": False},
                },
                {"name": "look", "image": "example.com/plugin:1"},
            ],
        }
    },
    "registry": {
        "global": {"imageRegistry": "mirror.example.com:5000/k8s/", "imagePullSecrets": ["all"]},
        "imagePullSecrets": [{"name": "ours"}, {"name": "more"}],
        "controllerManager": {"image": {"repository": "example.com/team/vnode", "digest": DIGEST}},
        "scheduler": {"image": {"tag": "v1.36.3", "digest": DIGEST}},
    },
    "workload identity": {
        "controllerManager": {
            "serviceAccount": {"annotations": {"azure.workload.identity/client-id": "0-1"}},
            "podLabels": {"azure.workload.identity/use": "true"},
        }
    },
    "cert-manager, an Issuer": {
        "controllerManager": {"certManager": {"issuerRef": {"name": "company"}}}
    },
    "cert-manager, a ClusterIssuer and approval": {
        "controllerManager": {
            "certManager": {
                "issuerRef": {"name": "company", "kind": "ClusterIssuer"},
                "approve": True,
            }
        }
    },
    "cert-manager, addresses that stay": {
        "controllerManager": {
            "hostNetwork": True,
            "nodeSelector": {"agents-of-vnode": "true"},
            "config": {"ports": {"kubelet": 11250}},
            "certManager": {
                "issuerRef": {
                    "name": "company",
                    "kind": "ClusterIssuer",
                    "group": "cert-manager.io",
                },
                "ipAddresses": ["192.0.2.7", "192.0.2.8"],
            },
        }
    },
    "dashboard": {
        "controllerManager": {"config": {"ports": {"dashboard": 9445}}},
        "dashboard": {
            "service": {"annotations": {"example.com/tls": "true"}},
            "ingress": {
                "enabled": True,
                "className": "outer",
                "annotations": {"example.com/backend": "HTTPS"},
                "host": "vnode.example.com",
                "tls": [{"hosts": ["vnode.example.com"], "secretName": "vnode-tls"}],
            },
            "httpRoute": {
                "enabled": True,
                "parentRefs": [{"name": "outer", "namespace": "gateways"}],
                "hostnames": ["vnode.example.com"],
            },
        },
    },
    "dashboard behind a proxy": {
        "controllerManager": {"config": {"ports": {"dashboard": 9445}}},
        "dashboard": {
            "ingress": {"enabled": True, "backend": {"name": "proxy", "port": {"number": 4180}}},
            "httpRoute": {
                "enabled": True,
                "parentRefs": [{"name": "outer"}],
                "backendRefs": [{"name": "proxy", "port": 4180}],
            },
        },
    },
    # What somebody may have in a file for Admiralty's chart.
    "Admiralty's values": {
        "clusterName": "c1",
        "imagePullSecretName": "registry",
        "sourceController": {"enabled": True},
        "webhook": {"reinvocationPolicy": "IfNeeded"},
        "controllerManager": {
            "replicas": 3,
            "certificateSignerName": "beta.eks.amazonaws.com/app-serving",
            "resources": {"limits": {"cpu": 1}},
        },
        "scheduler": {"replicas": 3, "resources": {}},
        "restarter": {"replicas": 2, "image": {"repository": "x"}},
        "postDeleteJob": {"nodeSelector": {}},
        "debug": {"proxyScheduler": False, "restarter": False},
    },
}
