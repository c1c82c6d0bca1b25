"""Gets programs from Debian's packages, for what cannot be had otherwise (containerd, buildah).

Some packages bring services that must not start here, so while apt runs a `policy-rc.d` forbids it,
unless the machine has one already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hack.fleetlib import cachefolder, progress
from hack.fleetlib.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_POLICY = Path("/usr/sbin/policy-rc.d")


def lacking(programs: Mapping[str, str]) -> list[str]:
    """Return the packages whose programs this machine lacks; `programs` maps program to package."""
    return sorted(package for program, package in programs.items() if not shutil.which(program))


def install(programs: Mapping[str, str]) -> None:
    """Install what is lacking; FleetError, with the names, where that cannot be done."""
    if not lacking(programs):
        return
    with cachefolder.locked("apt", lambda: progress.say("waiting for another apt-get ...")):
        if not (missing := lacking(programs)):
            return
        names = ", ".join(missing)
        if os.geteuid() != 0:
            raise FleetError(f"only root can install {names}")
        if shutil.which("apt-get") is None:
            raise FleetError(f"no apt-get here: install what Debian calls {names}")
        with progress.reported(f"installing {names}"), _services_kept_from_starting():
            _apt("update")
            _apt("install", "--yes", "--no-install-recommends", *missing)
    if left := lacking(programs):
        raise FleetError(f"still lacking after apt-get: {', '.join(left)}")


def unpack(package: str, program: str, folder: Path) -> None:
    """Take a program out of a package, without installing it; FleetError if that cannot be done."""
    if shutil.which("apt-get") is None:
        raise FleetError("no apt-get here")
    with (
        cachefolder.locked("apt", lambda: progress.say("waiting for another apt-get ...")),
        tempfile.TemporaryDirectory(prefix="vnode-package-", dir=folder) as place,
        progress.reported(f"getting Debian's {package}"),
    ):
        try:
            _apt("download", package, folder=place)
        except FleetError:
            if os.geteuid() != 0:
                raise
            _apt("update")  # nobody has asked Debian yet
            _apt("download", package, folder=place)
        [file] = Path(place).glob("*.deb")
        _run(["dpkg-deb", "--extract", str(file), place])
        shutil.move(Path(place) / "usr" / "bin" / program, folder / program)


@contextmanager
def _services_kept_from_starting() -> Iterator[None]:
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text("#!/bin/sh\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink()


def _apt(*words: str, folder: str | None = None) -> None:
    _run(["apt-get", "--quiet=2", *words], folder)


def _run(command: list[str], folder: str | None = None) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise FleetError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr).strip()}")
