"""Decides for which architectures images are built: those asked for, or all that can be."""

from __future__ import annotations

import os

from hack.distlib import plugin
from hack.fleetlib import emulation, progress
from hack.fleetlib.errors import FleetError
from hack.fleetlib.tools import binaries

ALL, NONE = "all", "none"


def chosen(words: str) -> tuple[str, ...]:
    """Return the architectures that `--images WORDS` means; FleetError if one cannot be built."""
    if words == NONE:
        return ()
    if words == ALL:
        return _possible()
    if os.geteuid() != 0:
        raise FleetError("building images takes root: or leave them out by --images none")
    return tuple(words.split(","))


def _possible() -> tuple[str, ...]:
    """Return the architectures of which images can be built here; say of others why not."""
    if os.geteuid() != 0:
        progress.say("no images: building them takes root")
        return ()
    found = []
    for architecture in plugin.ARCHITECTURES:
        try:
            emulation.ensure(architecture, binaries.system_and_machine()[1])
        except FleetError as error:
            progress.say(f"no image for {architecture}: {error}")
        else:
            found.append(architecture)
    return tuple(found)
