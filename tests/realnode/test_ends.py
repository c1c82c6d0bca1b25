"""How a pod that is deleted ends on a real node: its last status, and the time that it is given."""

from __future__ import annotations

import pytest

from tests import kit
from tests.realnode.cluster import NodeCluster, pod

STUBBORN = "trap '' TERM; while true; do sleep 1; done"


def test_a_job_hears_the_exit_code_of_a_pod_that_was_deleted(source: NodeCluster):
    """It counts only pods that have ended, and fails by a rule for this one code."""
    template = pod("", "trap 'sleep 1; exit 43' TERM; sleep 1000 & wait", restartPolicy="Never")
    template["spec"]["terminationGracePeriodSeconds"] = 20
    codes = {"operator": "In", "values": [43]}
    spec = {
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": codes}]},
        "template": {
            "metadata": {"annotations": template["metadata"]["annotations"]},
            "spec": template["spec"],
        },
    }
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "ends"}, "spec": spec}
    source.apply(job)
    source.ask("wait", "--for=jsonpath={.status.ready}=1", "job/ends", kit.TIMEOUT)

    source.ask("delete", "pod", "-l", "job-name=ends", "--wait=false")

    source.ask("wait", "--for=condition=Failed", "job/ends", kit.TIMEOUT)
    (reason,) = [
        entry["reason"]
        for entry in source.get("job", "ends")["status"]["conditions"]
        if entry["type"] == "Failed"
    ]
    assert reason == "PodFailurePolicy"
    source.ask("delete", "job", "ends", "--wait")


@pytest.mark.parametrize("how", ["--grace-period=2", "--now", "--force"])
def test_a_pod_ends_in_the_time_that_its_deletion_gives_it(
    source: NodeCluster, target: NodeCluster, how: str
):
    name = "ends" + how.replace("=", "-")
    made = pod(name, STUBBORN)
    made["spec"]["terminationGracePeriodSeconds"] = 600
    source.apply(made)
    source.ask("wait", "--for=condition=Ready", f"pod/{name}", kit.TIMEOUT)
    delegate = target.delegate_of(source.get("pod", name))

    source.ask("delete", "pod", name, how, kit.TIMEOUT)

    target.ask("wait", "--for=delete", f"pod/{delegate}", "--timeout=1s")


def test_a_pod_that_the_kubelet_refuses_fails_with_its_reason(source: NodeCluster):
    """No condition says so, the phase alone: a pod with a sysctl that the node does not allow."""
    refused = pod("refused", "true", restartPolicy="Always")
    sysctls = [{"name": "kernel.msgmax", "value": "10000000000"}]
    refused["spec"]["securityContext"] = {"sysctls": sysctls}
    source.apply(refused)
    source.ask("wait", "--for=jsonpath={.status.phase}=Failed", "pod/refused", kit.TIMEOUT)
    status = source.get("pod", "refused")["status"]
    assert status["reason"] == "SysctlForbidden"
    assert "kernel.msgmax" in status["message"]
    source.ask("delete", "pod", "refused", kit.TIMEOUT)
