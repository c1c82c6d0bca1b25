"""What krew is told, and which libraries `kubectl vnode` shares among versions of Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from packaging.utils import parse_wheel_filename

from hack.distlib import plugin

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("wheel", "folder"),
    [
        ("click-8.5.1-py3-none-any.whl", "any"),
        ("six-1.17.0-py2.py3-none-any.whl", "any"),
        ("cryptography-50.0.2-cp311-abi3-manylinux_2_28_x86_64.whl", "any"),
        ("aiohttp-3.14.5-cp313-cp313-manylinux2014_aarch64.manylinux_2_17_aarch64.whl", "cp313"),
    ],
)
def test_a_library_is_shared_where_all_versions_can_load_it(wheel: str, folder: str):
    assert plugin.folder(parse_wheel_filename(wheel)[3]) == folder


def test_the_manifest_names_each_archive_below_the_given_address():
    sums = {"amd64": "a" * 64, "arm64": "b" * 64}
    made = plugin.manifest("0.2.0", "https://example.com/v0.2.0/", sums, "")
    assert made["metadata"]["name"] == "vnode"  # krew: as the file
    assert made["spec"]["version"] == "v0.2.0"
    assert "homepage" not in made["spec"]
    found = {each["selector"]["matchLabels"]["arch"]: each for each in made["spec"]["platforms"]}
    assert found.keys() == plugin.ARCHITECTURES.keys()
    for architecture, platform in found.items():
        name = f"kubectl-vnode-0.2.0-linux-{architecture}.tar.gz"
        assert platform["uri"] == f"https://example.com/v0.2.0/{name}"
        assert platform["sha256"] == sums[architecture]
        assert platform["bin"] == "kubectl-vnode"


def test_without_an_address_the_manifest_says_that_it_has_a_placeholder(tmp_path: Path):
    for architecture in plugin.ARCHITECTURES:
        (tmp_path / plugin.archive_name("0.2.0", architecture)).write_bytes(b"")
    plugin.write_manifest("0.2.0", "", "", tmp_path)
    text = (tmp_path / plugin.MANIFEST).read_text()
    assert text.startswith(f"# {plugin.NOWHERE} is a placeholder")
    made = yaml.safe_load(text)
    for platform in made["spec"]["platforms"]:
        assert platform["uri"].startswith(f"{plugin.NOWHERE}/kubectl-vnode-0.2.0-linux-")
    plugin.write_manifest("0.2.0", "https://example.com", "", tmp_path)
    assert "placeholder" not in (tmp_path / plugin.MANIFEST).read_text()


def test_versions_of_python_are_those_that_are_supported():
    classifiers = (ROOT / "pyproject.toml").read_text()
    for version in plugin.PYTHONS:
        assert f"Python :: {version}" in classifiers


def test_a_python_without_libraries_is_told_which_have_some(tmp_path: Path):
    program = tmp_path / plugin.PROGRAM
    program.write_text((ROOT / "hack" / "distlib" / "kubectl_vnode.py").read_text())
    for version in ("cp398", "cp399"):
        (tmp_path / "lib" / version).mkdir(parents=True)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith("use one of 3.98, 3.99\n")
