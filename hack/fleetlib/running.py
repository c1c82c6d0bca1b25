"""Runs a program to its end, for tools that need its output and say why it failed."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from hack.fleetlib.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_SHOWN = 20  # lines of a failure


def output(
    command: Sequence[str | Path],
    given: str = "",
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Return what a program prints; FleetError with the end of that if it fails.

    It reads `given`, runs in `folder`, and has `environment` in addition to ours.
    """
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        input=given,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        printed = (done.stdout + done.stderr).strip().splitlines()[-_SHOWN:]
        raise FleetError("\n".join([f"{' '.join(words)} failed:", *printed]))
    return done.stdout
