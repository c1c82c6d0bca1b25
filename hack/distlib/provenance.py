"""States what the artefacts were made of: a statement of in-toto with SLSA's predicate, unsigned.

Who signs it vouches for it: the workflow that releases has the forge do that, for each artefact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import json_format
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement

if TYPE_CHECKING:
    from hack.distlib.source import ReleaseSource

PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:vnode:make-dist:1"
LOCAL = "urn:vnode:local-build"


def statement(
    release: ReleaseSource,
    sums: dict[str, str],
    parameters: dict[str, Any],
    libraries: list[dict[str, Any]],
    *,
    builder: str = LOCAL,
    repository: str = "",
) -> str:
    """Return the statement over artefacts with these SHA-256 sums, by file name.

    `parameters` are the arguments of the build, `libraries` components of CycloneDX.
    """
    subjects = [ResourceDescriptor(name, digest={"sha256": sum_}).pb for name, sum_ in sums.items()]
    commit = {"digest": {"gitCommit": release.commit}}
    source = {"uri": f"git+{repository}", **commit} if repository else {"name": "source", **commit}
    predicate = {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": parameters,
            "resolvedDependencies": [source, *({"uri": each["purl"]} for each in libraries)],
        },
        "runDetails": {"builder": {"id": builder}},
    }
    made = Statement(subjects, PREDICATE, predicate)
    made.validate()
    text: str = json_format.MessageToJson(made.pb, sort_keys=True)
    return text + "\n"
