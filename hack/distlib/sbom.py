"""Lists what is in the artefacts as CycloneDX: the libraries of a wheel, all that an image has.

Libraries are read from an environment that has the wheel and what constraints.txt pins, as the
image has: their licences and who needs whom are in their metadata. Debian's packages are read from
an image's layers, from the database in which scanners look for them, too.
"""

from __future__ import annotations

import json
import sys
import venv
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from hack.distlib import oci, tools
from hack.fleetlib import running

if TYPE_CHECKING:
    from hack.distlib.source import ReleaseSource

_STATUS = "var/lib/dpkg/status"
_LICENCES = {"protobuf": "BSD-3-Clause"}  # told in words of its own, which cyclonedx-bom leaves out


def of_wheel(release: ReleaseSource, wheel: Path, folder: Path) -> dict[str, Any]:
    """Return the list of what a wheel needs; installs it in `folder`, an empty one."""
    venv.create(folder, symlinks=True, with_pip=False)
    python = folder / "bin" / "python"
    tools.install(python, "--requirement", release.folder / "constraints.txt")
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--quiet", "--python", python, "install"]
    running.output([*pip, "--no-deps", "--no-index", wheel])
    list_: list[str | Path] = [
        sys.executable,
        "-m",
        "cyclonedx_py",
        "environment",
        "--output-reproducible",
    ]
    project = release.folder / "pyproject.toml"
    printed = running.output(
        [*list_, "--pyproject", project, "--of", "JSON", "--sv", "1.6", python],
        environment=release.environment,
    )
    found: dict[str, Any] = json.loads(printed)
    return _portable(found, release)


def _portable(found: dict[str, Any], release: ReleaseSource) -> dict[str, Any]:
    """Name the version, which is not in pyproject.toml, and leave out paths of this machine."""
    whole = found["metadata"]["component"]
    whole["version"] = release.version
    whole["purl"] = f"pkg:pypi/{whole['name']}@{release.version}"
    for component in (whole, *found["components"]):
        component.pop("externalReferences", None)
        if not component.get("licenses") and (known := _LICENCES.get(component["name"])):
            component["licenses"] = [{"license": {"id": known, "acknowledgement": "declared"}}]
    found["components"] = [c for c in found["components"] if c["name"] != whole["name"]]
    return found


def of_image(release: ReleaseSource, archive: Path, libraries: dict[str, Any]) -> str:
    """Return the list of what an image has: Debian's packages, and the `libraries` of the wheel."""
    image = oci.read(archive)
    root = Component(
        name=archive.name.removesuffix(".oci.tar"),
        version=release.version,
        type=ComponentType.CONTAINER,
        properties=[Property(name="oci:manifest", value=image.digest)],
    )
    components = [*_debian(image), *map(_library, libraries["components"])]
    own = libraries["metadata"]["component"]
    components.append(_component(own["name"], release.version, "pypi"))
    made = Bom(components=components, serial_number=uuid5(NAMESPACE_URL, image.digest))
    made.metadata.component = root
    made.metadata.timestamp = datetime.fromtimestamp(release.epoch, UTC)
    made.register_dependency(root, components)
    text: str = make_outputter(made, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(
        indent=2
    )
    return text + "\n"


def _debian(image: oci.ImageArchive) -> list[Component]:
    entries = (image.file(_STATUS) or b"").decode().strip().split("\n\n")
    fields = [dict(_fields(entry)) for entry in entries if entry]
    return [
        _component(each["Package"], each["Version"], "deb", each["Architecture"]) for each in fields
    ]


def _fields(entry: str) -> list[tuple[str, str]]:
    lines = [line.split(": ", 1) for line in entry.splitlines() if not line.startswith(" ")]
    return [(line[0], line[1]) for line in lines if len(line) == 2]


def _library(listed: dict[str, Any]) -> Component:
    return _component(listed["name"], listed["version"], "pypi")


def _component(name: str, version: str, type_: str, architecture: str = "") -> Component:
    qualifiers = {"arch": architecture} if architecture else None
    namespace = "debian" if type_ == "deb" else None
    url = PackageURL(type_, namespace, name, version, qualifiers)
    return Component(name=name, version=version, purl=url, bom_ref=str(url))
