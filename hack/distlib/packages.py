"""Builds what is installed: wheel and sdist by hatchling, the chart by helm, and the CRDs alone.

Helm gives files of a package the time of the day, so its package is written anew.
"""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hack.distlib import archives
from hack.fleetlib import running
from hack.fleetlib.errors import FleetError
from hack.fleetlib.tools import binaries

if TYPE_CHECKING:
    from hack.distlib.archives import ArchivedFile
    from hack.distlib.source import ReleaseSource

_IMAGE = re.compile(r'(    repository: )vnode(\n    tag: )""')


def python(release: ReleaseSource, out: Path) -> None:
    """Write wheel and sdist."""
    build: list[str | Path] = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-t",
        "sdist",
        "-d",
        out,
    ]
    running.output(build, folder=release.folder, environment=release.environment)


def wheel(out: Path) -> Path:
    """Return the wheel that `python` has written."""
    [found] = out.glob("*.whl")
    return found


def chart(release: ReleaseSource, out: Path, image: str = "") -> None:
    """Write the chart as a package of Helm, which installs `image` (REPOSITORY@DIGEST) if given."""
    helm = binaries.locate(["helm"])["helm"]
    with tempfile.TemporaryDirectory() as folder:
        running.output([helm, "package", release.folder / "charts" / "vnode", "-d", folder])
        [package] = Path(folder).iterdir()
        files = archives.of_archive(package)
        if image:
            files = [_with_image(file, image, release.version) for file in files]
        archives.write(out / package.name, files, release.epoch)


def _with_image(file: ArchivedFile, image: str, version: str) -> ArchivedFile:
    if file.path != "vnode/values.yaml":
        return file
    return replace(file, content=naming(file.content.decode(), image, version).encode())


def naming(values: str, image: str, version: str) -> str:
    """Return the chart's values with an image by its digest, beside the version for people."""
    repository, _, digest = image.partition("@")
    if not re.fullmatch("sha256:[0-9a-f]{64}", digest):
        raise FleetError(f"--image {image}: name it by its digest, REPOSITORY@sha256:...")
    tag = f"{version}@{digest}"
    made, count = _IMAGE.subn(rf'\g<1>{repository}\g<2>"{tag}"', values)
    if count != 1:
        raise FleetError("values.yaml does not name the image as hack/distlib/packages.py expects")
    return made


def crds(release: ReleaseSource, out: Path) -> None:
    """Write all CRDs in one file, for those who apply them before everything else."""
    files = sorted((release.folder / "vnode" / "manifests" / "crds").glob("*.yaml"))
    text = "---\n".join(file.read_text() for file in files)
    (out / f"vnode-crds-{release.version}.yaml").write_text(text)
