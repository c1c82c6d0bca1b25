"""A container in the target that writes to its source, with its token of the source.

It does as the executor of Argo Workflows, which is not here: a client with the configuration that
Kubernetes gives to every pod writes a WorkflowTaskResult for its own pod.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests import kit
from tests.kit import ROOT
from tests.realnode.cluster import NodeCluster
from vnode.api import keys
from vnode.cli import kubeconfigs

RESULTS = "workflowtaskresults.argoproj.io"


@pytest.fixture
def argo(source: NodeCluster) -> Iterator[None]:
    """Install Argo's CRDs and its executor's role in the source, but not in the target.

    The source gives out tokens until the test ends.
    """
    reach, _name = kubeconfigs.read(source.fleet.kubeconfig(source.name))
    server = urlsplit(reach.server)
    bindings = ("vnode-token-minter", "executor")
    account = "--serviceaccount=default:default"
    source.ask("apply", "-f", str(ROOT / "tests" / "docs" / "argo.yaml"))
    source.ask("wait", "--for=condition=Established", f"crd/{RESULTS}")
    source.ask("create", "role", "executor", "--verb=create,patch", f"--resource={RESULTS}")
    source.ask("create", "rolebinding", "executor", "--role=executor", account)
    minter = ("--clusterrole=vnode-token-minter", "--serviceaccount=vnode:vnode")
    source.ask("create", "rolebinding", bindings[0], *minter)
    source.ask("annotate", "target", "c2", f"{keys.TOKENS}=source={server.hostname}:{server.port}")
    yield
    source.ask("annotate", "target", "c2", f"{keys.TOKENS}-")
    source.ask("delete", "role", "executor")
    source.ask("delete", "rolebinding", *bindings)
    source.ask("delete", "-f", str(ROOT / "tests" / "docs" / "argo.yaml"))


def test_a_step_of_a_workflow_leaves_its_result_in_the_source(
    source: NodeCluster, target: NodeCluster, argo: None
):
    result = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "WorkflowTaskResult",
        "metadata": {"name": "step"},
        "outputs": {"result": "42"},
    }
    program = {"name": "kubectl", "hostPath": {"path": kit.program("kubectl"), "type": "File"}}
    log = source.finish(
        "step",
        f"echo '{json.dumps(result)}' | /kubectl create --cache-dir=/tmp/cache -f -",
        container={"volumeMounts": [{"name": "kubectl", "mountPath": "/kubectl"}]},
        volumes=[program],
    )

    assert log == "workflowtaskresult.argoproj.io/step created\n"
    assert source.get(RESULTS, "step")["outputs"] == {"result": "42"}
    assert target.kubectl("get", RESULTS).code  # nothing of Argo is needed there
    source.remove("step")
