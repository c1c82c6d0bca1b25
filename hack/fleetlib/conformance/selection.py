"""Reads which specs of the suite are run, and which are expected to differ through a virtual node.

Specs are named by regular expressions on their whole names. Each carries its reason, because a spec
that is left out without one is a spec that nobody looks at again.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from hack.fleetlib.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Sequence

SPECS: Final = Path(__file__).with_name("specs.toml")
DIFFERENCES: Final = Path(__file__).with_name("differences.toml")

Part = Literal["focus", "short", "brief", "all"]
_SERIAL: Final = r"\[(Serial|Disruptive)\]"
_MINUTES: Final = 180
_GROUPED: Final = ("all", "focus")
_OF_GROUPS: Final = {"group", "serial", "minutes"}


@dataclass(frozen=True, slots=True)
class ListedPattern:
    """A pattern of names, and why it is listed; `matches` tells whether a name is meant."""

    pattern: str
    reason: str

    def matches(self, name: str) -> bool:
        return re.search(self.pattern, name) is not None


@dataclass(frozen=True, slots=True)
class Selection:
    """A spec is run if a focus matches its name and no skip does, as Ginkgo has it."""

    focus: tuple[str, ...]
    skip: tuple[str, ...]

    def flags(self) -> list[str]:
        focus = [f"--focus={pattern}" for pattern in self.focus]
        return [*focus, *(f"--skip={pattern}" for pattern in self.skip)]


@dataclass(frozen=True, slots=True)
class SpecGroup:
    """Specs that are run together; `serial` ones want the clusters for themselves."""

    name: str
    selection: Selection
    serial: bool = False
    minutes: int = _MINUTES


def specs(text: str, part: Part = "focus") -> Selection:
    """Read `specs.toml`, or one of its shorter lists; FleetError if it is not as it should be."""
    document = _parse(text)
    skip = [*_entries(document, "skip"), *_entries(document, "never")]
    focus = tuple(entry.pattern for entry in _entries(document, part))
    return Selection(focus, tuple(entry.pattern for entry in skip))


def groups(text: str, names: Sequence[str] = ()) -> list[SpecGroup]:
    """Read all groups of `specs.toml`, those last that `make conformance` runs; or those `names`.

    A spec belongs to the first group that names it, so each skips what those before it have; serial
    groups and others share nothing.
    """
    document = _parse(text)
    never = [entry.pattern for entry in _entries(document, "never")]
    listed = [entry.pattern for entry in _entries(document, "skip")]
    taken: dict[bool, list[str]] = {True: [], False: [_SERIAL]}
    found = []
    for kind, skip in (("all", never), ("focus", never + listed)):
        _entries(document, kind)  # are as they should be
        for entry in (entry for entry in document.get(kind, ()) if "group" in entry):
            serial = entry.get("serial", False)
            chosen = Selection((entry["specs"],), (*skip, *taken[serial]))
            minutes = entry.get("minutes", _MINUTES)
            found.append(SpecGroup(entry["group"], chosen, serial, minutes))
            taken[serial].append(entry["specs"])
    known = {group.name: group for group in found}
    if unknown := sorted(set(names) - known.keys()):
        raise FleetError(f"no group {unknown[0]!r} in {SPECS.name}: it has {', '.join(known)}")
    return [known[name] for name in names] if names else found


def differences(text: str) -> list[ListedPattern]:
    """Read `differences.toml`; FleetError if it is not as it should be."""
    return _entries(_parse(text), "differs")


def only(names: Sequence[str]) -> Selection:
    """Return the selection of the specs with these names, and no others."""
    return Selection(tuple(f"{re.escape(name)}$" for name in names), ())


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FleetError(f"no list of specs: {error}") from error


def _entries(document: dict[str, Any], kind: str) -> list[ListedPattern]:
    found = []
    allowed = _OF_GROUPS if kind in _GROUPED else set()
    for entry in document.get(kind, ()):
        if set(entry) - allowed != {"specs", "reason"}:
            raise FleetError(f"{kind} needs specs and a reason, and nothing else: {entry}")
        try:
            re.compile(entry["specs"])
        except re.error as error:
            raise FleetError(
                f"{kind}: {entry['specs']!r} is no regular expression: {error}"
            ) from error
        found.append(ListedPattern(entry["specs"], entry["reason"]))
    return found
