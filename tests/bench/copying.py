"""One kubectl at a time: long copies and short commands, straight to the target and through vnode.

By turns, so that what else the machine does meanwhile meets both alike.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hack.fleetlib import progress
from tests.bench.figures import quantiles
from tests.bench.stream_figures import MIB, Copies, Latency
from tests.realnode.cluster import NodeCluster

OUT, IN = "out", "in"
_CHUNK = bytes(MIB)
_BLOCK = 65536


@dataclass(frozen=True)
class MeasuredProcess:
    """The source's agent, as the kernel sees it."""

    pid: int

    def cpu(self) -> float:
        """Return the CPU seconds that the agent has used up to now."""
        fields = Path(f"/proc/{self.pid}/schedstat").read_text().split()
        return int(fields[0]) / 1e9

    def rss(self) -> float:
        """Return the agent's resident memory in MiB."""
        return self._status("VmRSS")

    def peak(self) -> float:
        """Return the agent's highest resident memory since `forget_peak`, in MiB."""
        return self._status("VmHWM")

    def forget_peak(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def _status(self, field: str) -> float:
        text = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(rf"^{field}:\s+(\d+) kB", text, re.MULTILINE)
        assert found
        return int(found[1]) / 1024


@dataclass(frozen=True)
class Ways:
    """The pod by its two names."""

    target: NodeCluster
    delegate: str
    source: NodeCluster
    proxy: str

    @property
    def both(self) -> tuple[tuple[NodeCluster, str], tuple[NodeCluster, str]]:
        """Straight, through."""
        return (self.target, self.delegate), (self.source, self.proxy)


def copies(ways: Ways, agent: MeasuredProcess, direction: str, mib: int, rounds: int) -> Copies:
    """Copy `mib` as often as `rounds` says, each time both ways."""
    copy: Callable[[NodeCluster, str, int], float] = _copy_out if direction == OUT else _copy_in
    straight, through = [], []
    agent.forget_peak()
    before, cpu = agent.rss(), 0.0
    for _ in range(rounds):
        straight.append(copy(ways.target, ways.delegate, mib))
        spent = agent.cpu()
        through.append(copy(ways.source, ways.proxy, mib))
        cpu += agent.cpu() - spent
        progress.say(f"{mib} MiB {direction}: {straight[-1]:.1f} s, through {through[-1]:.1f} s")
    return Copies(direction, mib, straight, through, round(cpu, 2), agent.peak() - before)


def _copy_out(cluster: NodeCluster, pod: str, mib: int) -> float:
    """Wait until the last byte is here.

    The command waits for the end of its input, so that the session ends after that: where it ends
    while much is under way to a slow reader, Kubernetes itself loses some of it.
    """
    # Whole blocks: what busybox's other programs write is small, and frames would be as small.
    script = f"dd if=/dev/zero bs={_BLOCK} count={mib * MIB // _BLOCK}; cat"
    command = cluster.command("exec", "-i", pod, "--", "sh", "-c", script)
    begun, received, seconds = time.monotonic(), 0, 0.0
    pipe, silent = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=silent) as process:
        assert process.stdin
        assert process.stdout
        while piece := process.stdout.read1(MIB):  # type: ignore[attr-defined]  # is a BufferedReader
            received += len(piece)
            if received == mib * MIB:
                seconds = time.monotonic() - begun
                process.stdin.close()
    got = (process.returncode, received)
    assert got == (0, mib * MIB), f"exit code and bytes: {got}, from {cluster.name}"
    return round(seconds, 3)


def _copy_in(cluster: NodeCluster, pod: str, mib: int) -> float:
    """Return the seconds that a copy into the pod takes; `dd` there says how much it got.

    The shell around `dd` keeps standard output open: when that ends, containerd closes the input.
    """
    words = ("sh", "-c", f"dd of=/dev/null bs={_BLOCK} iflag=fullblock; true")
    command = cluster.command("exec", "-i", pod, "--", *words)
    begun = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stderr
        for _ in range(mib):
            process.stdin.write(_CHUNK)
        process.stdin.close()
        errors = process.stderr.read().decode()
    seconds = time.monotonic() - begun
    assert process.returncode == 0, errors
    assert f"{mib * MIB // _BLOCK}+0 records in" in errors, errors
    return round(seconds, 3)


def latency(ways: Ways, count: int) -> Latency:
    """Time `kubectl exec POD -- true`, `count` times straight and `count` times through vnode."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(count):
        for taken, (cluster, pod) in zip(seconds, ways.both, strict=True):
            begun = time.monotonic()
            cluster.ask("exec", pod, "--", "true")
            taken.append(time.monotonic() - begun)
    return Latency(*map(quantiles, seconds))
