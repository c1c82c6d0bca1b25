"""The objects that users apply for what they want of pods: pure."""

from __future__ import annotations

from tests import kit
from tests.faults import devices, followed_objects
from tests.faults.plan import JobTerms, WantedWorkload, WorkloadKind
from tests.faults.snapshot import APP, REPLACES_FAILED, VERSION
from vnode.api import keys, kinds
from vnode.api.kinds import Kind
from vnode.api.objects import Object

BUDGETS = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
RESOURCES = {
    WorkloadKind.POD: kinds.PODS,
    WorkloadKind.DEPLOYMENT: kinds.DEPLOYMENTS,
    WorkloadKind.STATEFUL_SET: kinds.STATEFUL_SETS,
    WorkloadKind.JOB: kinds.JOBS,
}
NO_EXIT_CODE = 42  # that a container of a fleet ever has


def build(workload: WantedWorkload) -> Object:
    """Return the object that a user applies."""
    template = _template(workload)
    if workload.kind is WorkloadKind.POD:
        return {**template, "metadata": {"name": workload.name, **template["metadata"]}}

    spec: Object = {"template": template}
    if workload.kind is WorkloadKind.JOB:
        template["spec"]["restartPolicy"] = "Never"
        spec |= {"completions": workload.replicas, "parallelism": workload.replicas}
        spec |= _terms(workload.job)
    else:
        spec |= {"replicas": workload.replicas, "selector": {"matchLabels": {APP: workload.name}}}

    if workload.kind is WorkloadKind.STATEFUL_SET:
        spec |= {"serviceName": workload.name, "podManagementPolicy": "Parallel"}

    return {"metadata": {"name": workload.name}, "spec": spec}


def budget(workload: WantedWorkload) -> Object:
    """Return the PodDisruptionBudget that goes with it."""
    selector = {"matchLabels": {APP: workload.name}}
    spec = {"maxUnavailable": 1, "selector": selector}
    return {"metadata": {"name": workload.name}, "spec": spec}


def _terms(job: JobTerms) -> Object:
    spec: Object = {"backoffLimit": 0 if job.ignores_disruptions else 1000}
    if job.indexed:
        spec["completionMode"] = "Indexed"

    if job.replaces_failed:
        spec["podReplacementPolicy"] = "Failed"

    if job.ignores_disruptions:
        codes = {"operator": "In", "values": [NO_EXIT_CODE]}
        rules = [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
            {"action": "FailJob", "onExitCodes": codes},
        ]
        spec["podFailurePolicy"] = {"rules": rules}

    return spec


def _template(workload: WantedWorkload) -> Object:
    annotations = {keys.ELECT: "", VERSION: str(workload.version)}
    if constraints := _constraints(workload):
        annotations[keys.PROXY_CONSTRAINTS] = "\n".join(constraints)

    if workload.gang:
        annotations |= {keys.GANG: workload.name, keys.GANG_MINIMUM: str(workload.gang)}

    if workload.farewell:
        annotations["pod-delete.stage.kwok.x-k8s.io/delay"] = f"{workload.farewell}s"

    if workload.kind is WorkloadKind.JOB:
        annotations["pod-complete.stage.kwok.x-k8s.io/delay"] = f"{workload.job.seconds}s"
        annotations |= {REPLACES_FAILED: "true"} if workload.job.replaces_failed else {}

    pod = kit.pod(workload.name, annotations=annotations)
    spec = {**pod["spec"], "volumes": followed_objects.volumes(workload.uses)}
    devices.give(spec, workload.device)
    return {"metadata": {"labels": {APP: workload.name}, "annotations": annotations}, "spec": spec}


def _constraints(workload: WantedWorkload) -> list[str]:
    """Return lines of YAML: where the proxy may be, and how long it stays at a lost node."""
    found: list[str] = []
    if workload.hopeless:
        found.append("nodeSelector: {example.com/no: where}")
    elif workload.on:
        found.append(f"nodeSelector: {{{keys.TARGET_NAME}: {workload.on}}}")

    if workload.patience:
        found.append(f"tolerations: {_tolerations(workload.patience)}")

    return found


def _tolerations(seconds: int) -> str:
    kinds_ = ("not-ready", "unreachable")
    each = ", ".join(
        f"{{key: node.kubernetes.io/{kind}, operator: Exists, effect: NoExecute, "
        f"tolerationSeconds: {seconds}}}"
        for kind in kinds_
    )
    own = f"{{key: {keys.PROVIDER_LABEL}, operator: Exists}}"
    return f"[{own}, {each}]"
