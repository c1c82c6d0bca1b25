"""Logs and exec of a proxy pod through its virtual node, with everything in place."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.integration import kubelets
from tests.kit import Fleet, phase, pod, until_gone, until_one
from vnode.api import kinds
from vnode.kube.client import Client

NAME = "streams"


@pytest.fixture
async def running(source: Client):
    """Yield a proxy pod whose delegate runs."""
    await source.create(kinds.PODS, pod(NAME), "default")
    yield await until_one(source, kinds.PODS, NAME, "default", lambda o: phase(o) == "Running")
    await source.delete(kinds.PODS, NAME, "default", grace=0)
    await until_gone(source, kinds.PODS, "default", field_selector=f"metadata.name={NAME}")


async def test_logs_come_from_the_cluster_that_runs_the_pod(fleet: Fleet, running):
    shown = _kubectl(fleet, "logs", NAME)

    assert shown.returncode == 0, shown.stderr
    assert shown.stdout


async def test_the_options_of_logs_reach_the_target(fleet: Fleet, running):
    everything = _kubectl(fleet, "logs", NAME).stdout.splitlines()
    assert len(everything) > 1
    assert _kubectl(fleet, "logs", NAME, "--tail=1").stdout.splitlines() == everything[-1:]
    assert len(_kubectl(fleet, "logs", NAME, "--limit-bytes=5").stdout) == 5
    stamped = _kubectl(fleet, "logs", NAME, "--timestamps", "--tail=1").stdout
    assert stamped.rstrip().endswith(everything[-1])
    assert stamped.startswith("20")


async def test_an_unknown_container_is_said_to_be_unknown(fleet: Fleet, running):
    shown = _kubectl(fleet, "logs", NAME, "-c", "nobody")
    assert shown.returncode
    assert "nobody" in shown.stderr


@pytest.mark.parametrize("spdy", [False, True], ids=["websocket", "spdy"])
async def test_exec_runs_in_the_cluster_that_runs_the_pod(fleet: Fleet, running, spdy: bool):
    shown = _kubectl(fleet, "exec", NAME, "--", "sh", "-c", "echo $CLUSTER", spdy=spdy)

    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.strip() in ("c2", "c3")


def _kubectl(fleet: Fleet, *words: str, spdy: bool = False) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*fleet.kubectl_command("c1"), *words],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, **kubelets.environment(spdy=spdy)},
    )
