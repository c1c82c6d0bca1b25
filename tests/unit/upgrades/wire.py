"""Lists all that versions of vnode write for each other and for users: keys and fields of CRDs.

`python -m tests.unit.upgrades.wire` writes the list of this version, wire.txt, anew; with a folder
of sources, that of another version to stdout. Each line is a key or a field with what its schema
demands; no descriptions, which bind nobody.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from vnode.api.objects import Object

HERE: Final = Path(__file__).parent
NOW: Final = HERE / "wire.txt"
BEFORE: Final = HERE / "wire-before.txt"
SOURCES: Final = HERE.parents[2]

_KEY: Final = re.compile(r"^([A-Z_]+): Final = (.+?)(?:  #.*)?$", re.MULTILINE)
_OF_CHILDREN: Final = frozenset(("properties", "items", "additionalProperties", "required"))


def listed(sources: Path) -> str:
    """Return the list of the version with these sources."""
    keys = (sources / "vnode" / "api" / "keys.py").read_text()
    found = sorted((sources / "vnode" / "manifests" / "crds").glob("*.yaml"))
    crds = (yaml.safe_load(file.read_text()) for file in found)
    lines = [f"key {name} = {_resolved(value, keys)}" for name, value in _KEY.findall(keys)]
    return "\n".join([*lines, *(line for crd in crds for line in of_crd(crd)), ""])


def _resolved(value: str, keys: str) -> str:
    """Return a value with the prefixes that it names spelt out."""
    for prefix in ("OWN_PREFIX", "PREFIX"):
        [text] = re.findall(rf'^{prefix}: Final = "(.+)"$', keys, re.MULTILINE)
        value = re.sub(rf'\b{prefix} \+ "', f'"{text}', value)

    return value


def of_crd(crd: Object) -> Iterator[str]:
    """Yield a line for each version of a CRD, and for each field of its objects."""
    name, spec = crd["metadata"]["name"], crd["spec"]
    for version in spec["versions"]:
        head = f"{name} {version['name']}"
        states = [state for state in ("served", "storage") if version[state]]
        states += sorted(version.get("subresources") or ())
        yield f"crd {head} {spec['scope']} {' '.join(states)}"
        for path, facts in _fields(version["schema"]["openAPIV3Schema"], ""):
            yield f"  {path or '.'} {facts}"


def _fields(
    schema: dict[str, Any], path: str, *, required: bool = False
) -> Iterator[tuple[str, str]]:
    facts = {k: v for k, v in schema.items() if k not in _OF_CHILDREN and k != "description"}
    if rules := facts.pop("x-kubernetes-validations", None):
        facts["rules"] = sorted(" ".join(rule["rule"].split()) for rule in rules)
    if required:
        facts["required"] = True

    yield path, json.dumps(facts, sort_keys=True)
    wanted = schema.get("required") or ()
    for name, child in (schema.get("properties") or {}).items():
        yield from _fields(child, f"{path}.{name}", required=name in wanted)

    for name, below in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(child := schema.get(name), dict):
            yield from _fields(child, f"{path}{below}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(listed(Path(sys.argv[1])), end="")
    else:
        NOW.write_text(listed(SOURCES))
