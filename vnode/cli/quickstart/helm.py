"""Runs helm, which owns what it installs: `helm upgrade` and `helm uninstall` work from then on."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vnode.api.errors import ConfigError
from vnode.cli.connect.connect import Side

RELEASE: Final = "vnode"
_SHOWN: Final = 5  # lines of what helm says when it fails

_IN_PROGRESS: Final = "another operation (install/upgrade/rollback) is in progress"
_BROKEN_OFF: Final = (
    ". If no other helm is at work there, one was broken off: see helm status in that cluster, and "
    f"end a pending-install by helm uninstall {RELEASE}, a pending-upgrade by helm rollback "
    f"{RELEASE}; then run the same again"
)


@dataclass(frozen=True, slots=True)
class Chart:
    """Which chart is installed, and with what values."""

    reference: str
    """A folder, a package, or the address of a chart."""
    values: tuple[Path, ...] = ()
    settings: tuple[str, ...] = ()
    """`NAME=VALUE`, as for --set."""


def check() -> None:
    """Raise ConfigError if there is no helm."""
    if shutil.which("helm") is None:
        raise ConfigError(
            "helm not found: install Helm 3.17 or newer; or install vnode on both sides in another "
            "way (vnode install, GitOps), and run the same again, which goes on from there"
        )


def words(side: Side, chart: Chart, namespace: str, seconds: float) -> list[str]:
    """Return the arguments that install the chart in a cluster, or upgrade its release. Pure."""
    found = ["upgrade", "--install", RELEASE, chart.reference, "--namespace", namespace]
    found += ["--create-namespace", "--timeout", f"{seconds:.0f}s"]
    if side.access.kubeconfig is not None:
        found += ["--kubeconfig", str(side.access.kubeconfig)]

    if side.access.context is not None:
        found += ["--kube-context", side.access.context]

    for file in chart.values:
        found += ["--values", str(file)]

    for setting in chart.settings:
        found += ["--set", setting]

    return found


async def install(arguments: Sequence[str], role: str) -> None:
    """Run helm; ConfigError has the end of what it says if it fails."""
    process = await asyncio.create_subprocess_exec(
        "helm", *arguments, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    _out, said = await process.communicate()
    if process.returncode:
        lines = said.decode(errors="replace").strip().splitlines()[-_SHOWN:]
        text = " ".join(lines)
        cure = _BROKEN_OFF if _IN_PROGRESS in text else ""
        raise ConfigError(f"helm failed in the {role} cluster: {text}{cure}")
