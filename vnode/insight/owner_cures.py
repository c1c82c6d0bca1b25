"""Tells why a Deployment, Job or other owner has no pods, or too few, and what to do. Pure."""

from __future__ import annotations

import re
from typing import Final

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.insight.named_pods import NamedResource

_QUEUE: Final = f"{keys.KUEUE}/queue-name"
_NOISE: Final = re.compile(r"^(\(combined from similar events\): )?(Error creating: )?")
_REFUSALS: Final = (
    (
        r"exceeded quota: (?P<quota>[^\s,]+)",
        (
            "free what is used, or raise it, in this cluster: kubectl edit resourcequota {quota} "
            "-n {namespace}"
        ),
    ),
    (r"failed calling webhook", "vnode doctor says whether that is vnode's webhook, and the cure"),
    (
        r"violates PodSecurity",
        "change the pod template, or the Pod Security label of namespace {namespace} here",
    ),
    (
        r'serviceaccount "(?P<account>[^"]+)" not found',
        "kubectl create serviceaccount {account} -n {namespace} (in this cluster)",
    ),
    (
        r"is forbidden|is invalid|denied the request",
        "the text names what refuses it: change the pod template, or that, in this cluster",
    ),
)


def without_pods(named: NamedResource, found: Object, warning: str) -> str:
    """Return why an owner has no pods, and the cure; `warning` is the last Event that may say so.

    "" if nothing tells it.
    """
    spec, where = objects.spec(found), f"-n {objects.namespace(found)}"
    if spec.get("suspend"):
        patch = """'{"spec":{"suspend":false}}'"""
        resume = f"kubectl patch {named} {where} --type merge --patch {patch}"
        if named.kind == "job" and _QUEUE in objects.labels(found):
            resume = f"Kueue resumes it once its queue has room: kubectl get workloads {where}"

        return f"it is suspended: {resume}"

    if spec.get("replicas") == 0:
        return f"it is scaled to 0: kubectl scale {named} {where} --replicas 1"

    if spec.get("paused"):
        return f"it is paused: kubectl rollout resume {named} {where}"

    if objects.is_condition_true(found, "Complete"):
        return "it has completed"

    return refused(warning, objects.namespace(found)) if warning else ""


def too_few(named: NamedResource, found: Object, count: int, warning: str) -> str:
    """Return that an owner has fewer pods than it wants, if a warning says why; else ""."""
    wanted = objects.spec(found).get("replicas")
    if not isinstance(wanted, int) or count >= wanted or not warning:
        return ""

    return f"{named} has {count} of {wanted} pods: {refused(warning, objects.namespace(found))}"


def refused(warning: str, namespace: str) -> str:
    """Return a warning with its cure."""
    warning = _NOISE.sub("", warning)
    for pattern, cure in _REFUSALS:
        if match := re.search(pattern, warning):
            return f"{warning}; {cure.format(namespace=namespace, **match.groupdict())}"

    return warning
