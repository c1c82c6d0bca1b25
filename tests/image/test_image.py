"""What the Containerfile promises, looked at from within a container of the chart."""

from __future__ import annotations

import json

from tests import kit
from tests.image.operating import in_agent, pods
from tests.realnode.cluster import NodeCluster

_INSTALLED = """
import json
from importlib import metadata
found = metadata.distributions()
print(json.dumps({one.name.lower().replace("-", "_"): one.version for one in found}))
"""


def test_libraries_are_those_of_the_constraints_and_no_others(source: NodeCluster):
    lines = (kit.ROOT / "constraints.txt").read_text().lower().replace("-", "_").splitlines()
    pinned = dict(line.rstrip(" \\").split("==") for line in lines if "==" in line)

    installed = json.loads(in_agent(source, "python", "-c", _INSTALLED))

    assert installed.pop("vnode_kubernetes") in in_agent(source, "vnode", "--version")
    assert {"aiohttp", "msgspec"} <= installed.keys()
    assert installed == {name: pinned.get(name) for name in installed}


def test_the_agent_is_nobody_and_may_nothing(source: NodeCluster):
    assert in_agent(source, "id", "-u").strip() == "65532"
    status = in_agent(source, "cat", "/proc/1/status")
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(facts["CapBnd"], 16) == 0
    assert facts["NoNewPrivs"] == "1"
    assert facts["Seccomp"] == "2"


def test_nothing_but_tmp_can_be_written(source: NodeCluster):
    script = "for place in / /opt/vnode /etc/vnode /tmp; do touch $place/x 2>&1 || true; done"

    printed = in_agent(source, "sh", "-c", script).splitlines()

    assert len(printed) == 3
    assert not any("/tmp" in line for line in printed)


def test_commands_and_plugins_are_on_the_path(source: NodeCluster):
    assert "Virtual nodes" in in_agent(source, "vnode", "--help")
    assert "Virtual nodes" in in_agent(source, "kubectl-vnode", "--help")


def test_no_container_has_ended_and_been_started_again(source: NodeCluster, target: NodeCluster):
    for cluster in (source, target):
        for component in ("agent", "candidate-scheduler"):
            found = pods(cluster, component)
            assert len(found) == 2
            for pod in found.values():
                (status,) = pod["status"]["containerStatuses"]
                assert status["ready"]
                assert status["restartCount"] == 0
