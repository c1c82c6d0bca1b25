"""Tells why a Deployment, Job or other owner has no pods, or too few, and what to do. Pure."""

from __future__ import annotations

import re
from typing import Final

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.insight.named_pods import NamedResource

_QUEUE: Final = f"{keys.KUEUE}/queue-name"
_NOISE: Final = re.compile(r"^(\(combined from similar events\): )?(Error creating: )?")
_NAMED: Final = "the text names what refuses it: change the pod template, or that, in this cluster"
_REFUSALS: Final = (
    (r"denied (the )?request", _NAMED),  # by webhooks and policies, which may say anything
    (
        r"exceeded quota: (?P<quota>[^\s,]+)",
        (
            "free what is used, or raise it, in this cluster: kubectl edit resourcequota {quota} "
            "-n {namespace}"
        ),
    ),
    (
        r'failed calling webhook "[^"]*(multicluster\.admiralty\.io|vnode\.dev)"',
        "that is vnode's webhook: vnode doctor says why it does not answer, and the cure",
    ),
    (
        r'failed calling webhook "(?P<webhook>[^"]+)"',
        (
            "see why webhook {webhook} of this cluster does not answer: kubectl get "
            "mutatingwebhookconfigurations,validatingwebhookconfigurations -o wide names its "
            "Service"
        ),
    ),
    (
        r"failed quota: \S+ must specify",
        "set them in the pod template, or make a LimitRange with defaults in namespace {namespace}",
    ),
    (
        r"usage per (Container|Pod)|max limit to request ratio",
        "change requests and limits of the template, or the LimitRange of namespace {namespace}",
    ),
    (
        r'(?P<kind>PriorityClass|RuntimeClass) (with name )?"?(?P<name>[^"\s]+)"? (was|not) found',
        "create {kind} {name} in this cluster, or have the pod template name one that is there",
    ),
    (
        r"because it is being terminated",
        (
            "nothing can be created in namespace {namespace} until it is gone: kubectl describe "
            "namespace {namespace} says what keeps it"
        ),
    ),
    (
        r"violates PodSecurity",
        "change the pod template, or the Pod Security label of namespace {namespace} here",
    ),
    (
        r'serviceaccount "(?P<account>[^"]+)" not found',
        "kubectl create serviceaccount {account} -n {namespace} (in this cluster)",
    ),
    (r"is forbidden|is invalid", _NAMED),
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

    if spec.get("replicas") == 0 and (maker := objects.controller_reference(found)):
        other = f"{str(maker.get('kind')).lower()}/{maker.get('name')}"
        return f"it is not the present one of {other}: vnode explain {other} {where}"

    if spec.get("replicas") == 0:
        return f"it is scaled to 0: kubectl scale {named} {where} --replicas 1"

    if spec.get("paused"):
        return f"it is paused: kubectl rollout resume {named} {where}"

    if objects.is_condition_true(found, "Complete"):
        return "it has completed"

    if (failed := objects.condition(found, "Failed") or {}).get("status") == "True":
        return _of_failed_job(named, failed, where)

    if named.kind == "cronjob":
        last = objects.status(found).get("lastScheduleTime")
        if not last:
            return f"it has not run yet; its schedule is {spec.get('schedule')}"

        return f"it ran last at {last}, and no pods of its Jobs are left: kubectl get jobs {where}"

    warning = warning or _failure(found)
    return refused(warning, objects.namespace(found)) if warning else ""


def _of_failed_job(named: NamedResource, failed: Object, where: str) -> str:
    text = f"it has failed: {failed.get('reason')}: {failed.get('message')}"
    return (
        f"{text}; what its pods said: kubectl describe {named} {where}; delete it, and create it "
        "again"
    )


def _failure(owner: Object) -> str:
    """Return why an owner could not create pods, by its status, which outlives Events."""
    failure = objects.condition(owner, "ReplicaFailure") or {}
    return str(failure.get("message") or "") if failure.get("status") == "True" else ""


def too_few(named: NamedResource, found: Object, count: int, warning: str) -> str:
    """Return that an owner has fewer pods than it wants, if it is known why; else ""."""
    wanted, where = objects.spec(found).get("replicas"), f"-n {objects.namespace(found)}"
    if not isinstance(wanted, int) or count >= wanted:
        return ""

    head, warning = f"{named} has {count} of {wanted} pods", warning or _failure(found)
    if warning:
        return f"{head}: {refused(warning, objects.namespace(found))}"

    if objects.spec(found).get("paused"):
        return f"{head}: it is paused: kubectl rollout resume {named} {where}"

    if named.kind == "statefulset" and objects.spec(found).get("podManagementPolicy") != "Parallel":
        return f"{head}: it creates each once the one before is ready"

    return ""


def refused(warning: str, namespace: str) -> str:
    """Return a warning with its cure."""
    warning = _NOISE.sub("", warning)
    for pattern, cure in _REFUSALS:
        if match := re.search(pattern, warning):
            return f"{warning}; {cure.format(namespace=namespace, **match.groupdict())}"

    return warning
