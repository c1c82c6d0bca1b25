"""Gets Apache Spark, which comes as a Python package with its jars, and what it runs on.

There are no images of Spark here, so containers of real nodes see the machine's copies: Spark in
the cache folder; Java, Python and a shell of Debian's packages, in the places where these put them.

Standard library only, because it runs before anything is installed.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from hack.fleetlib import cachefolder, debian, progress, running
from hack.fleetlib.errors import FleetError

VERSION = "4.3.0"
_JAVA = "/usr/bin/java"
_PROGRAMS = {_JAVA: "default-jre-headless", "/usr/bin/python3": "python3", "/usr/bin/bash": "bash"}


@dataclass(frozen=True, slots=True)
class Spark:
    """Where Spark and its Java are on this machine."""

    home: Path
    java_home: Path

    @property
    def folders(self) -> list[Path]:
        """Return the folders of the machine that Java, Python and the shell need."""
        settings = (self.java_home / "conf" / "security" / "java.security").resolve()
        inside = self.java_home in settings.parents
        wanted = [Path("/usr"), Path("/lib"), Path("/lib64")]
        wanted += [] if inside else [settings.parents[1]]
        return [folder for folder in wanted if folder.exists()]


def locate() -> Spark:
    """Return where Spark is, got first if need be; FleetError if it cannot be had."""
    debian.install(_PROGRAMS)
    folder = cachefolder.path() / "venv" / f"spark-{VERSION}"

    def waiting() -> None:
        progress.say("another process is getting Spark; waiting for it ...")

    cachefolder.make_once(folder, lambda: _install(folder), waiting)
    homes = list(folder.glob("lib/*/site-packages/pyspark"))
    if len(homes) != 1:
        raise FleetError(f"Spark is not whole: remove {folder}, and run hack/spark again")
    return Spark(homes[0], Path(_JAVA).resolve().parents[1])


def _install(folder: Path) -> None:
    with progress.reported(f"getting Spark {VERSION}"):
        running.output([sys.executable, "-m", "venv", folder])
        pip: list[str | Path] = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
        running.output([*pip, "--disable-pip-version-check", "--no-deps", f"pyspark=={VERSION}"])
