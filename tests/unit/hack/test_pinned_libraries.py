"""What is released, and what releases it, is pinned by hashes; nothing is fetched past them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ENTRY = re.compile(r"([\w.-]+)==[\w.]+( \\\n    --hash=sha256:[0-9a-f]{64})+")


def names(file: str) -> set[str]:
    """Return the libraries that a file pins; each line of it is one's, or a comment."""
    text = "".join(
        line for line in (ROOT / file).read_text().splitlines(True) if not line.startswith("#")
    )
    found = list(ENTRY.finditer(text))
    assert "".join(f"{entry[0]}\n" for entry in found) == text
    return {normal(entry[1]) for entry in found}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize(
    "file", ["constraints.txt", "build-constraints.txt", "hack/release-constraints.txt"]
)
def test_each_library_has_its_hashes_and_no_address(file: str) -> None:
    assert names(file)


def test_all_that_the_project_depends_on_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for file, wanted in (
        ("constraints.txt", project["project"]["dependencies"]),
        ("build-constraints.txt", project["build-system"]["requires"]),
    ):
        listed = {normal(re.split(r"[<>=!~ \[;]", entry)[0]) for entry in wanted}
        assert listed <= names(file)


def test_wheels_of_the_image_and_of_a_release_have_one_builder() -> None:
    [image], [release] = (
        re.findall(r"^hatchling==\S+", (ROOT / file).read_text(), re.MULTILINE)
        for file in ("build-constraints.txt", "hack/release-constraints.txt")
    )
    assert image == release


def test_the_image_takes_libraries_by_their_hashes_only() -> None:
    text = (ROOT / "Containerfile").read_text().replace("\\\n", " ")
    installs = re.findall(r"pip install [^&\n]*", text)
    assert len(installs) == 3
    assert all("--require-hashes" in each or "--no-index" in each for each in installs)
