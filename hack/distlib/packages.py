"""Builds what is installed: wheel and sdist by hatchling, the chart by helm, and parts of it alone.

What a release knows and the repository does not is written into the chart: the image by its digest,
and where the pages are that alerts link to. Helm gives files of a package the time of the day, so
its package is written anew.
"""

from __future__ import annotations

import json
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

_RUNBOOKS = "docs/runbooks"
_NO_RUNBOOKS = 'runbooks: ""}'
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


def chart(release: ReleaseSource, out: Path, image: str = "", pages: str = "") -> None:
    """Write the chart as a package of Helm.

    If given, it installs `image` (REPOSITORY@DIGEST), and its alerts link to pages below `pages`.
    """
    helm = binaries.locate(["helm"])["helm"]
    with tempfile.TemporaryDirectory() as folder:
        running.output([helm, "package", release.folder / "charts" / "vnode", "-d", folder])
        [package] = Path(folder).iterdir()
        files = archives.of_archive(package)
        files = [_released(file, release.version, image, pages) for file in files]
        archives.write(out / package.name, files, release.epoch)


def _released(file: ArchivedFile, version: str, image: str, pages: str) -> ArchivedFile:
    if file.path != "vnode/values.yaml":
        return file
    values = file.content.decode()
    if image:
        values = naming(values, image, version)
    if pages:
        values = linking(values, pages)
    return replace(file, content=values.encode())


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


def runbooks(homepage: str, tag: str) -> str:
    """Return where a forge shows the pages of a release; empty if page or tag is not known."""
    return f"{homepage.rstrip('/')}/blob/{tag}/{_RUNBOOKS}" if homepage and tag else ""


def linking(values: str, pages: str) -> str:
    """Return the chart's values with where the pages are that alerts link to."""
    if values.count(_NO_RUNBOOKS) != 1:
        raise FleetError("values.yaml has no runbooks as hack/distlib/packages.py expects")
    return values.replace(_NO_RUNBOOKS, f"runbooks: {json.dumps(pages)}}}")


def monitoring(release: ReleaseSource, out: Path, pages: str = "") -> None:
    """Write the alerts and the dashboard, for those who monitor without the chart."""
    chart = release.folder / "charts" / "vnode"
    rules = (chart / "files" / "alerts.yaml").read_text()
    if pages:
        rules = rules.replace(f"runbook_url: {_RUNBOOKS}/", f"runbook_url: {pages}/")
    (out / f"vnode-alerts-{release.version}.yaml").write_text(rules)
    dashboard = (chart / "dashboards" / "vnode.json").read_text()
    (out / f"vnode-dashboard-{release.version}.json").write_text(dashboard)


def crds(release: ReleaseSource, out: Path) -> None:
    """Write all CRDs in one file, for those who apply them before everything else."""
    files = sorted((release.folder / "vnode" / "manifests" / "crds").glob("*.yaml"))
    text = "---\n".join(file.read_text() for file in files)
    (out / f"vnode-crds-{release.version}.yaml").write_text(text)
