"""Packs `kubectl vnode` for krew: an archive for each architecture, and the manifest of them.

krew installs archives and no packages of Python, so that the libraries come along: those that all
versions of Python share once, the others for each version. A small program takes what fits the
Python that runs it. Libraries are those of constraints.txt, by their hashes.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from packaging.utils import parse_wheel_filename

from hack.distlib import archives, checksums
from hack.distlib.archives import ArchivedFile
from hack.fleetlib import running

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.tags import Tag

    from hack.distlib.source import ReleaseSource

ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PROGRAM = "kubectl-vnode"
MANIFEST = "vnode.yaml"
NOWHERE = "https://vnode.invalid/name-it-by-base-url"
"""Stands for an address that nobody has given: a name that never resolves (RFC 2606)."""
_PLACEHOLDER = (
    f"# {NOWHERE} is a placeholder: it was made without --base-url. Install with\n"
    "# kubectl krew install --manifest=vnode.yaml --archive=FILE, or make it anew with\n"
    '# make dist DIST="--base-url URL".\n'
)
_SHARED = "any"
_GLIBC = ("manylinux2014", "manylinux_2_17", "manylinux_2_24", "manylinux_2_28")
_LAUNCHER = "hack/distlib/kubectl_vnode.py"


def archive_name(version: str, architecture: str) -> str:
    """Return the name of an archive."""
    return f"{PROGRAM}-{version}-linux-{architecture}.tar.gz"


def write_archive(release: ReleaseSource, wheel: Path, architecture: str, out: Path) -> None:
    """Write the archive for one architecture, with vnode's own `wheel` in it."""
    with tempfile.TemporaryDirectory() as folder:
        for python in PYTHONS:
            _download(release, python, architecture, Path(folder))
        wheels = [wheel, *sorted(Path(folder).iterdir())]
        files = [file for each in wheels for file in _unpacked(each)]
    files.append(ArchivedFile(PROGRAM, (release.folder / _LAUNCHER).read_bytes(), executable=True))
    files.append(ArchivedFile("LICENSE", (release.folder / "LICENSE").read_bytes()))
    archives.write(out / archive_name(release.version, architecture), files, release.epoch)


def _download(release: ReleaseSource, python: str, architecture: str, folder: Path) -> None:
    machine = ARCHITECTURES[architecture]
    platforms = [word for libc in _GLIBC for word in ("--platform", f"{libc}_{machine}")]
    chosen = ["--python-version", python, "--only-binary=:all:", "--no-deps", "--require-hashes"]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    pinned = release.folder / "constraints.txt"
    running.output([*pip, *chosen, *platforms, "--dest", folder, "--requirement", pinned])


def _unpacked(wheel: Path) -> list[ArchivedFile]:
    _name, _version, _build, tags = parse_wheel_filename(wheel.name)
    with zipfile.ZipFile(wheel) as opened:
        return [
            ArchivedFile(f"lib/{folder(tags)}/{name}", opened.read(name))
            for name in opened.namelist()
            if not name.endswith("/") and ".data/" not in name
        ]


def folder(tags: Iterable[Tag]) -> str:
    """Return where a wheel's files go: where every Python finds them, or that of one version."""
    interpreters = {tag.interpreter for tag in tags}
    if any(name.startswith("py") for name in interpreters) or {tag.abi for tag in tags} == {"abi3"}:
        return _SHARED
    [interpreter] = interpreters
    return interpreter


def manifest(version: str, base_url: str, sums: dict[str, str], homepage: str) -> dict[str, Any]:
    """Return krew's manifest; `sums` are the archives' SHA-256 sums, by architecture."""
    spec = {
        "version": f"v{version}",
        **({"homepage": homepage} if homepage else {}),
        "shortDescription": "Look at and operate virtual nodes of other clusters",
        "description": (
            "vnode makes other clusters nodes of this one. This is its command: it connects\n"
            "clusters, shows and explains where pods run, drains, and checks both sides.\n"
        ),
        "caveats": f"Needs Python {PYTHONS[0]} to {PYTHONS[-1]} as python3, on Linux with glibc.\n",
        "platforms": [
            {
                "selector": {"matchLabels": {"os": "linux", "arch": architecture}},
                "uri": f"{base_url.rstrip('/')}/{archive_name(version, architecture)}",
                "sha256": digest,
                "bin": PROGRAM,
            }
            for architecture, digest in sums.items()
        ],
    }
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "vnode"},
        "spec": spec,
    }


def write_manifest(version: str, base_url: str, homepage: str, out: Path) -> None:
    """Write the manifest of the archives in `out`, which will be found below `base_url`.

    Without one it has a placeholder, which is enough to install an archive that is there.
    """
    sums = {
        architecture: checksums.sha256(file)
        for architecture in ARCHITECTURES
        if (file := out / archive_name(version, architecture)).exists()
    }
    described = manifest(version, base_url or NOWHERE, sums, homepage)
    head = "" if base_url else _PLACEHOLDER
    (out / MANIFEST).write_text(head + yaml.safe_dump(described, sort_keys=False))
