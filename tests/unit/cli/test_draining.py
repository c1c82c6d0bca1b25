"""Which pods a drain evicts, and which only with a flag."""

from __future__ import annotations

import pytest

from vnode.api.objects import Object
from vnode.cli.drain import filters
from vnode.cli.drain.filters import DrainRules


def pod(name: str, owner: str = "ReplicaSet", **more: Object) -> Object:
    metadata: Object = {"name": name, "namespace": "a", **more.get("metadata", {})}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner, "controller": True}]

    return {"metadata": metadata, "spec": more.get("spec", {}), "status": more.get("status", {})}


ORDINARY = pod("ordinary")
DAEMON = pod("daemon", "DaemonSet")
ALONE = pod("alone", "")
DONE = pod("done", "", status={"phase": "Succeeded"})
LOCAL = pod("local", spec={"volumes": [{"emptyDir": {}}]})
MIRROR = pod("mirror", "", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}})


def test_pods_that_are_replaced_or_done_are_evicted() -> None:
    chosen = filters.select([ORDINARY, DONE, MIRROR], DrainRules())
    assert (chosen.evicted, chosen.warnings, chosen.errors) == ([ORDINARY, DONE], [], [])


@pytest.mark.parametrize(
    ("what", "flag", "rules", "evicted"),
    [
        (DAEMON, "--ignore-daemonsets", DrainRules(ignore_daemonsets=True), False),
        (ALONE, "--force", DrainRules(force=True), True),
        (LOCAL, "--delete-emptydir-data", DrainRules(delete_emptydir_data=True), True),
    ],
)
def test_others_need_a_flag_which_the_error_names(
    what: Object, flag: str, rules: DrainRules, evicted: bool
) -> None:
    [error] = filters.select([what], DrainRules()).errors
    assert flag in error
    chosen = filters.select([what], rules)
    assert chosen.errors == []
    assert len(chosen.warnings) == 1
    assert chosen.evicted == ([what] if evicted else [])
