"""Makes all artefacts of a release, in order: what describes others comes after them.

Everything is written into a new folder beside the one that was asked for, and takes its place in
the end: what lies there is whole, and of one commit.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hack.distlib import checksums, notes, packages, plugin, provenance, sbom, source
from hack.fleetlib import imaging, progress
from hack.fleetlib.errors import FleetError

if TYPE_CHECKING:
    from hack.distlib.source import ReleaseSource

STAGES = ("", "distroless")


@dataclass(frozen=True, slots=True)
class Request:
    """What `hack/dist` was asked for."""

    out: Path
    base_url: str = ""
    """Where the artefacts will be downloaded from; without it krew's manifest has a placeholder."""
    homepage: str = ""
    image: str = ""
    """What the chart installs, REPOSITORY@DIGEST; without it users name theirs."""
    tag: str = ""
    """The tag that is released: the version has to be its, and everything committed and dated."""
    builder: str = provenance.LOCAL
    architectures: tuple[str, ...] = ()
    """Of the images; none are built for none."""

    @property
    def runbooks(self) -> str:
        """Where the pages of alerts can be read; empty if nobody says where the repository is."""
        return packages.runbooks(self.homepage, self.tag)

    @property
    def parameters(self) -> dict[str, Any]:
        """What decides about the artefacts, beside the commit."""
        return {
            "baseUrl": self.base_url,
            "homepage": self.homepage,
            "tag": self.tag,
            "image": self.image,
            "images": list(self.architectures),
        }


def make(request: Request) -> list[Path]:
    """Make the release; return its files. FleetError says what is missing."""
    changed = source.uncommitted()
    if changed and request.tag:
        raise FleetError(f"commit or remove first: {', '.join(changed)}")
    if changed:
        progress.say(f"not committed, so not in the artefacts: {', '.join(changed[:5])}")
    request.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=request.out.parent, prefix=".dist-") as folder:
        work, out = Path(folder), Path(folder) / "out"
        out.mkdir()
        release = source.export(work)
        if request.tag not in ("", f"v{release.version}"):
            raise FleetError(f"the tag {request.tag} is not of version {release.version}")
        _make(release, request, out, work)
        shutil.rmtree(request.out, ignore_errors=True)
        out.rename(request.out)
    return sorted(request.out.iterdir())


def _make(release: ReleaseSource, request: Request, out: Path, work: Path) -> None:
    changelog = (release.folder / "CHANGELOG.md").read_text()
    text = notes.section(changelog, release.version, final=bool(request.tag))
    with progress.reported("building wheel, sdist and chart"):
        packages.python(release, out)
        packages.chart(release, out, request.image, request.runbooks)
        packages.crds(release, out)
        packages.monitoring(release, out, request.runbooks)
    wheel = packages.wheel(out)
    for architecture in plugin.ARCHITECTURES:
        with progress.reported(f"packing kubectl vnode for {architecture}"):
            plugin.write_archive(release, wheel, architecture, out)
    plugin.write_manifest(release.version, request.base_url, request.homepage, out)
    if not request.base_url:
        progress.say(
            f"{plugin.MANIFEST} has a placeholder ({plugin.NOWHERE}): krew installs with --archive "
            "only; --base-url says where the archives will be"
        )

    with progress.reported("listing what the wheel needs"):
        libraries = sbom.of_wheel(release, wheel, work / "environment")
    (out / f"vnode-{release.version}.cdx.json").write_text(json.dumps(libraries, indent=2) + "\n")
    for architecture in request.architectures:
        for stage in STAGES:
            _image(release, imaging.Variant(architecture, stage), libraries, out)

    (out / "release-notes.md").write_text(text)
    sums = {file.name: checksums.sha256(file) for file in sorted(out.iterdir())}
    stated = provenance.statement(
        release,
        sums,
        request.parameters,
        libraries["components"],
        builder=request.builder,
        repository=request.homepage,
    )
    (out / f"vnode-{release.version}.provenance.json").write_text(stated)
    checksums.write(out)


def _image(
    release: ReleaseSource, variant: imaging.Variant, libraries: dict[str, Any], out: Path
) -> None:
    parts = ["vnode-image", release.version, variant.stage, "linux", variant.architecture]
    file = out / ("-".join(filter(None, parts)) + ".oci.tar")
    imaging.write_archive(file, variant, release.folder, release.epoch)
    listed = sbom.of_image(release, file, libraries)
    file.with_suffix("").with_suffix(".cdx.json").write_text(listed)
