"""The workflows of the forge take nothing that can change under them, and no more than needed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# What a registry is called belongs to those who publish: the forge's variables say it.
_HOST = re.compile(r"\b(ghcr|docker|quay|gcr|pypi|pkg|registry)\.[a-z0-9.-]+\b")


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job.get("steps", ())]


@pytest.fixture(params=WORKFLOWS, ids=lambda file: file.name)
def text(request: pytest.FixtureRequest) -> str:
    file: Path = request.param
    return file.read_text()


def test_actions_are_named_by_commit_and_say_which_version_that_is(text: str):
    named = re.findall(r"uses: (.*)", text)
    assert named
    for action in named:
        pinned = re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
        assert pinned or action.startswith("./.github/workflows/"), action


def test_one_version_of_each_action_is_in_use():
    named = {
        line for file in WORKFLOWS for line in re.findall(r"uses: (\S+@\S+)", file.read_text())
    }
    assert len(named) == len({line.partition("@")[0] for line in named})


def test_a_job_has_the_rights_that_it_names_and_a_time_limit(text: str):
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        assert job["permissions"], name
        assert "uses" in job or job["timeout-minutes"] <= 120, name


def test_the_token_is_not_left_to_programs_of_the_checkout(text: str):
    for step in steps(yaml.safe_load(text)):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_scripts_get_what_others_may_have_written_as_variables(text: str):
    for step in steps(yaml.safe_load(text)):
        assert "${{" not in step.get("run", ""), step


def test_a_script_fails_if_any_part_of_a_pipe_does(text: str):
    """The forge's own bash has no pipefail, that of `shell: bash` has."""
    for step in steps(yaml.safe_load(text)):
        if re.search(r"[^|]\|[^|]", step.get("run", "")):
            assert step.get("shell") == "bash", step


def workflow(name: str) -> dict[Any, Any]:
    loaded: dict[Any, Any] = yaml.safe_load(
        (ROOT / ".github" / "workflows" / f"{name}.yml").read_text()
    )
    return loaded


def test_what_is_released_was_tried_before_it_is_signed():
    """Images are built and run by root only: without it `make dist-test` leaves them out."""
    jobs = workflow("release")["jobs"]
    tests = " ".join(step.get("run", "") for step in jobs["test"]["steps"])
    for target in ("dist-test", "dist-image-test"):
        assert re.search(rf"sudo --preserve-env=CI make {target}\b", tests)
    runs = [step.get("run", "") for step in jobs["images"]["steps"]]
    [tried] = [place for place, run in enumerate(runs) if "docker run --rm" in run]
    [signed] = [place for place, run in enumerate(runs) if "cosign sign" in run]
    assert tried < signed
    built = jobs["images"]["steps"][tried]["env"]["IMAGE"]
    assert built == jobs["images"]["steps"][signed]["env"]["IMAGE"]
    assert "@${{ steps.build.outputs.digest }}" in built
    [pushed] = [step["with"] for step in jobs["images"]["steps"] if step.get("id") == "build"]
    for platform in pushed["platforms"].split(","):
        assert platform.removeprefix("linux/") in re.findall(r"\w+", runs[tried])


def test_a_change_of_what_versions_tell_each_other_runs_the_upgrades():
    asked = workflow("upgrades")
    triggers = asked[True]  # YAML 1.1 reads `on` so
    assert triggers["pull_request"]["paths"] == triggers["push"]["paths"]
    paths = triggers["push"]["paths"]
    assert {"tests/unit/upgrades/wire.txt", "vnode/manifests/crds/**"} <= set(paths)
    for path in paths:
        assert (ROOT / path.removesuffix("/**")).exists(), path
    found = steps(asked)
    assert found[-1]["run"] == "make upgrades"
    assert found[0]["with"]["fetch-depth"] == 0  # the version before comes from the history


def test_unit_tests_run_on_each_python_that_is_supported():
    [job] = workflow("pythons")["jobs"].values()
    supported = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert job["strategy"]["matrix"]["python"] == supported
    assert job["steps"][-1]["run"] == "make unit"


def test_no_registry_is_named(text: str):
    assert not _HOST.search(text)


def test_targets_and_flags_that_are_called_exist(text: str):
    makefile, dist = (ROOT / "Makefile").read_text(), (ROOT / "hack" / "dist").read_text()
    for step in steps(yaml.safe_load(text)):
        run = step.get("run", "")
        for target in re.findall(r"\bmake ([\w-]+)", run):
            assert f"\n{target}:" in makefile, target
        if "hack/dist" in run:
            command = run.replace("\\\n", " ").partition("\n")[0]
            for flag in re.findall(r"(--[\w-]+)", command):
                assert f'"{flag}"' in dist, flag


def test_both_images_of_the_containerfile_are_released_and_scanned():
    containerfile = (ROOT / "Containerfile").read_text()
    texts = {file.stem: file.read_text() for file in WORKFLOWS}
    building = {name: text for name, text in texts.items() if "file Containerfile" in text}
    building |= {name: text for name, text in texts.items() if "file: Containerfile" in text}
    assert building.keys() == {"audit", "release"}
    for text in building.values():
        for stage in re.findall(r"stage: \[?\"\", (\w+)|stage: (\w+)$", text, re.MULTILINE):
            assert f"AS {''.join(stage)}\n" in containerfile
        assert "distroless" in text
