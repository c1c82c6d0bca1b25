"""Which folders of the machine a container needs for Spark, and what is made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.fleetlib import cachefolder
from hack.fleetlib.tools.spark import Spark


def java(folder: Path, settings: Path) -> Spark:
    """Return a Spark whose Java has its settings in another folder."""
    (settings / "security").mkdir(parents=True)
    (settings / "security" / "java.security").touch()
    (folder / "conf" / "security").mkdir(parents=True, exist_ok=True)
    if settings != folder / "conf":
        (folder / "conf" / "security" / "java.security").symlink_to(
            settings / "security" / "java.security"
        )

    return Spark(folder / "spark", folder)


def test_settings_of_java_that_are_elsewhere_are_taken_along(tmp_path: Path) -> None:
    settings = tmp_path / "etc" / "java-17"
    assert settings in java(tmp_path / "java", settings).folders


def test_settings_within_java_need_no_folder_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "java"
    found = java(folder, folder / "conf").folders
    assert Path("/usr") in found
    assert not any(folder in (each, *each.parents) for each in found)


def test_what_was_not_finished_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VNODE_CACHE", str(tmp_path))
    made: list[str] = []
    folder = tmp_path / "things"

    def fail() -> None:
        folder.mkdir()
        (folder / "half").touch()
        raise OSError("no room")

    def make() -> None:
        folder.mkdir()
        made.append("whole")

    with pytest.raises(OSError, match="no room"):
        cachefolder.make_once(folder, fail, lambda: None)

    for _ in range(2):
        cachefolder.make_once(folder, make, lambda: None)

    assert made == ["whole"]
    assert [each.name for each in folder.iterdir()] == ["finished"]
