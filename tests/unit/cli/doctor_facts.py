"""Facts of clusters and connections, as vnode doctor finds them."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

from vnode import __version__
from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.cli import manifests
from vnode.cli.doctor.facts import ClusterFacts, ConnectionFacts
from vnode.cli.doctor.findings import Finding
from vnode.runtime.certs import keypairs

CRDS, RBAC = manifests.crds(), manifests.rbac("vnode")
RIGHT, WRONG = {"create pods": True}, {"create pods": False}
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CA = base64.b64encode(keypairs.make_authority(NOW, timedelta(days=9)).certificate).decode()
ADMIRALTYS = {"list pods": True, "get pods": False}
POLICIES = [obj for obj in manifests.policies("vnode") if not obj["kind"].endswith("Binding")]
SELF_TARGET = {"type": "SelfTargetAllowed", "status": "False", "message": "may not; run x"}


def lease(age: float, holder: str = "a") -> Object:
    renewed = objects.micro_timestamp(NOW - timedelta(seconds=age))
    return {"spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}}


def crds() -> list[Object]:
    established = {"conditions": [{"type": "Established", "status": "True"}]}
    return [{**crd, "status": established} for crd in CRDS]


def webhook(bundle: str = CA) -> Object:
    return {"webhooks": [{"clientConfig": {"caBundle": bundle}}]}


def pod(age: float) -> Object:
    created = objects.timestamp(NOW - timedelta(seconds=age))
    return {"metadata": {"name": "p", "namespace": "a", "creationTimestamp": created}}


def cluster(**more: Any) -> ClusterFacts:
    given: dict[str, Any] = {
        "version": "v1.36.3",
        "skew": 0.2,
        "crds": crds(),
        "roles": [role for role in RBAC if role["kind"] == "ClusterRole"],
        "policies": POLICIES,
        "agent_lease": lease(2),
        "may_read_leases": True,
        "webhook": webhook(),
        "admission": "",
        "targets": [{"metadata": {"name": "a"}}],
    }
    return ClusterFacts("here", NOW, **(given | more))


def ready() -> Object:
    condition = {"type": "Ready", "status": "True", "reason": "Connected", "message": "fine"}
    return {"metadata": {"name": "gpu", "namespace": "a"}, "status": {"conditions": [condition]}}


def unready(reason: str, message: str) -> Object:
    found = ready()
    condition = found["status"]["conditions"][0]
    condition |= {"status": "False", "reason": reason, "message": message}
    return found


def summary(age: float, **more: str) -> Object:
    beat = objects.timestamp(NOW - timedelta(seconds=age))
    annotations = {keys.AGENT_VERSION: __version__, keys.HEARTBEAT: beat, **more}
    return {"metadata": {"annotations": annotations}}


def connection(**more: Any) -> ConnectionFacts:
    given: dict[str, Any] = {
        "target": ready(),
        "node": {"metadata": {"name": "n"}},
        "rights": RIGHT,
    }
    return ConnectionFacts(now=NOW, **(given | more))


def worst(findings: list[Finding], check: str) -> Finding:
    [found] = [finding for finding in findings if finding.check == check]
    return found


def not_renewed() -> Object:
    target = ready()
    unwell = {
        "type": "CredentialsLast",
        "status": "False",
        "reason": "NotRenewed",
        "message": "why",
    }
    target["status"]["conditions"].append(unwell)
    return target
