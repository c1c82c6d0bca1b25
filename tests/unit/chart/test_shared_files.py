"""What the chart shares with the command and with the image is the same on both sides."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import vnode
from hack.fleetlib import charting

ROOT = Path(__file__).resolve().parents[3]
CONTAINERFILE = (ROOT / "Containerfile").read_text().replace("\\\n", " ")


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)$", CONTAINERFILE, re.MULTILINE)


def test_the_charts_copies_are_up_to_date():
    assert charting.actual() == charting.expected(), "run hack/chart"


def test_chart_and_command_have_one_version():
    chart = yaml.safe_load((charting.CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == vnode.__version__, "run hack/chart"


def test_the_schema_of_values_has_the_fields_of_the_agents_configuration():
    """Where it had others, helm would install what an agent refuses at its start."""
    assert charting.schema() == (charting.CHART / "values.schema.json").read_text(), (
        "run hack/chart"
    )
    definitions = json.loads(charting.schema())["definitions"]
    structs = [part for name, part in definitions.items() if name.startswith("agent.")]
    assert len(structs) > 10
    assert all(part["additionalProperties"] is False for part in structs)


def test_pages_and_examples_name_this_version():
    others = ("Containerfile", "CONTRIBUTING.md", "README.md", "vnode/cli/examples.py")
    for file in (*(ROOT / name for name in others), *(ROOT / "docs").glob("*.md")):
        named = set(re.findall(r"(?:vnode[\w-]*[-:]|tags/v)(\d+\.\d+\.\d+)", file.read_text()))
        assert named <= {vnode.__version__}, file.name
    minor = vnode.__version__.rpartition(".")[0]
    assert f"\n| {minor} | all |\n" in (ROOT / "SECURITY.md").read_text()


def test_every_value_is_in_the_schema_and_has_the_type_it_says():
    schema = json.loads((charting.CHART / "values.schema.json").read_text())
    values = yaml.safe_load((charting.CHART / "values.yaml").read_text())
    assert values.keys() <= schema["properties"].keys()
    for name, value in values.items():
        properties = schema["properties"][name].get("properties")
        if properties is not None:
            assert value.keys() <= properties.keys(), name


def test_the_image_copies_what_there_is_and_nothing_is_ignored():
    ignored = (ROOT / ".containerignore").read_text().splitlines()
    for line in instructions("COPY"):
        if "--from" not in line:
            for source in line.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in ignored


def test_the_image_has_what_the_build_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    copied = " ".join(instructions("COPY"))
    for name in (*wheel, project["project"]["readme"]):
        assert name in copied


def test_the_image_runs_what_the_chart_runs_as_the_same_user():
    template = (charting.CHART / "templates" / "agent.yaml").read_text()
    entry = json.loads(instructions("ENTRYPOINT")[0])
    [command] = re.findall(r"command: \[(.*)\]", template)
    assert command.split(", ") == entry
    [arguments] = re.findall(r"args:\n\s+- (\w+)", template)
    assert json.loads(instructions("CMD")[0]) == [arguments]
    pods = (charting.CHART / "templates" / "_pods.tpl").read_text()
    user, group = instructions("USER")[0].split(":")
    assert f'"runAsUser" {user}' in pods
    assert f'"runAsGroup" {group}' in pods


def test_the_base_image_is_pinned_to_a_patch_release_and_its_digest():
    [image] = [word for line in instructions("ARG") for word in shlex.split(line)]
    assert re.fullmatch(r"PYTHON=python:\d+\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", image)
    stages = [line.split(" AS ")[-1] for line in instructions("FROM")]
    for line in instructions("FROM"):
        assert line.split()[0] in ("${PYTHON}", "scratch", *stages)


def test_the_image_without_a_shell_runs_like_the_other():
    for name in ("ENTRYPOINT", "CMD", "USER"):
        distroless, usual = instructions(name)
        assert distroless == usual


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.rstrip(" \\").split("==") for line in lines if "==" in line]
    return {name.lower().replace("_", "-"): version for name, version in pairs}


@pytest.mark.parametrize(
    "dependency",
    tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"],
)
def test_each_dependency_is_pinned_within_its_bounds(dependency: str):
    wanted = Requirement(dependency)
    assert wanted.specifier.contains(pinned()[wanted.name.lower()])
