"""Copies what the chart shares with the command line from `vnode` into the chart's folder.

The one source is `vnode/manifests` and `vnode scheduler-config`. `expected` says what the chart
must hold, by path; `write` writes that, and deletes all other files. The chart's version is that of
the command, too: `metadata` says what Chart.yaml must be. `schema` says what the schema of values
must be: an agent refuses a field that it does not know, so helm has to do so before.
"""

from __future__ import annotations

import importlib.resources
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

CHART = Path(__file__).resolve().parents[2] / "charts" / "vnode"
_HEAD = "# Written by hack/chart from {source}: change it there.\n"
_FOLDERS = ("crds", "policies", "rbac")
_FILES = ("scoped-rbac.yaml", "self-targets.yaml", "webhook.yaml")
_OF_AGENT = "agent."
_DEFINITIONS = '  "definitions": {\n'
_FOR_READERS = ("title", "description", "default")
_MADE = ("candidate-scheduler.yaml", "cluster-scoped.yaml")


def expected() -> dict[str, str]:
    """Return the contents that the chart must have, by path below its `files`."""
    from vnode.cli import manifests, scheduler_config, scoped_rights

    root = importlib.resources.files("vnode") / "manifests"
    found = {name: _copy(root / name, f"vnode/manifests/{name}") for name in _FILES}
    for folder in _FOLDERS:
        for file in (root / folder).iterdir():
            path = f"{folder}/{file.name}"
            found[path] = _copy(file, f"vnode/manifests/{path}")

    head = _HEAD.format(source="vnode/cli/scoped_rights.py")
    scoped = {"resources": scoped_rights.CLUSTER_SCOPED}
    found["cluster-scoped.yaml"] = head + yaml.safe_dump(scoped, sort_keys=False)
    config = scheduler_config.build(f"https://vnode.{manifests.NAMESPACE}.svc:9444")
    head = _HEAD.format(source="vnode/cli/scheduler_config.py")
    found["candidate-scheduler.yaml"] = head + yaml.safe_dump(config, sort_keys=False)
    return found


def metadata() -> str:
    """Return what Chart.yaml must be: the command's version is the chart's, and its image's."""
    from vnode import __version__

    text = (CHART / "Chart.yaml").read_text()
    return re.sub(r"(?m)^(version|appVersion): .*$", rf"\1: {__version__}", text)


def schema() -> str:
    """Return what values.schema.json must be: it has each Struct of the agent's configuration."""
    import msgspec

    from vnode.agent.config import AgentConfig

    refs = f"#/definitions/{_OF_AGENT}{{name}}"
    _refs, found = msgspec.json.schema_components([AgentConfig], ref_template=refs)
    lines = [
        f'    "{_OF_AGENT}{name}": {json.dumps(_bare(definition))},\n'
        for name, definition in sorted(found.items())
    ]
    text = re.sub(rf'(?m)^    "{_OF_AGENT}.*\n', "", (CHART / "values.schema.json").read_text())
    return text.replace(_DEFINITIONS, _DEFINITIONS + "".join(lines), 1)


def _bare(part: Any) -> Any:
    """Return a part of a schema without what is for readers: configuration.md says it better."""
    if isinstance(part, list):
        return [_bare(each) for each in part]
    if not isinstance(part, dict):
        return part
    kept = {key: _bare(value) for key, value in part.items() if key not in _FOR_READERS}
    if "properties" in part:  # whose names may be those of keywords
        kept["properties"] = {name: _bare(value) for name, value in part["properties"].items()}
    return kept


def actual() -> dict[str, str]:
    """Return the contents that the chart has, by path below its `files`."""
    files = [CHART / "files" / name for name in (*_FILES, *_MADE)]
    for folder in _FOLDERS:
        files += sorted((CHART / "files" / folder).glob("*"))

    root = CHART / "files"
    return {str(file.relative_to(root)): file.read_text() for file in files if file.exists()}


def write() -> list[Path]:
    """Bring the chart up to date; return the files that were changed or deleted."""
    wanted, present = expected(), actual()
    changed = []
    for name, text in (("Chart.yaml", metadata()), ("values.schema.json", schema())):
        if (file := CHART / name).read_text() != text:
            file.write_text(text)
            changed.append(file)

    for path in sorted(wanted.keys() | present.keys()):
        file = CHART / "files" / path
        if path not in wanted:
            file.unlink()
        elif wanted[path] != present.get(path):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(wanted[path])
        else:
            continue

        changed.append(file)

    return changed


def _copy(file: Traversable, source: str) -> str:
    return _HEAD.format(source=source) + file.read_text("utf-8")
