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
    for file in WORKFLOWS:
        text = file.read_text()
        for stage in re.findall(r"stage: \[?\"\", (\w+)|stage: (\w+)$", text, re.MULTILINE):
            assert f"AS {''.join(stage)}\n" in containerfile
        assert "distroless" in text
