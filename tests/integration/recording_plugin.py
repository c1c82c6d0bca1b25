"""An exec plugin that notes each of its runs, and then does what the inventory's own plugin does.

It begins as many plugins do, as a shell script that starts an interpreter, and is found on the
PATH: so variables can make it run other code. `Traps` is such code, which leaves a mark.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vnode.targets.profiles.config import AccessProvider, ExecConfig, ExecVariable

COMMAND = "recording-plugin"
_SCRIPT = """
import json, os, pathlib, sys
notes, plugin, *words = sys.argv[1:]
shown = json.loads(os.environ["KUBERNETES_EXEC_INFO"])["spec"]["cluster"]
run = {"cluster": shown, "words": words, "environment": dict(os.environ)}
pathlib.Path(notes, f"{os.getpid()}.json").write_text(json.dumps(run))
os.execv(plugin, [plugin])
"""


@dataclass(frozen=True)
class PluginRun:
    """A run of the plugin: the cluster that it was shown, its own arguments, its environment."""

    cluster: dict[str, Any]
    words: list[str]
    environment: dict[str, str]


class RecordingPlugin:
    """Stands in `folder`, with a note of each run; `reader` is the plugin that gives the token."""

    def __init__(self, folder: Path, reader: ExecConfig) -> None:
        programs, self._notes = folder / "programs", folder / "notes"
        for made in (programs, self._notes):
            made.mkdir()

        script = folder / "recording_plugin.py"
        script.write_text(_SCRIPT)
        _write_program(programs / COMMAND, f'exec {sys.executable} {script} "$@"')
        path = ExecVariable("PATH", f"{programs}:{os.environ['PATH']}")
        words = (str(self._notes), reader.command)
        self._config = ExecConfig(
            COMMAND, args=words, env=(*reader.env, path), provide_cluster_info=True
        )

    def provider(self, name: str, **policies: Any) -> AccessProvider:
        """Return a provider that runs the plugin."""
        return AccessProvider(name, self._config, **policies)

    def runs(self) -> dict[str, PluginRun]:
        """Return the last run for each cluster, by the name that its profile gives."""
        found = [PluginRun(**json.loads(note.read_text())) for note in self._notes.iterdir()]
        return {str(run.cluster["config"]["profile"]): run for run in found}


class Traps:
    """Code in a folder that leaves a mark if a variable has a plugin run it."""

    def __init__(self, folder: Path) -> None:
        self._marks = folder / "marks"
        programs, self.program = folder / "traps", folder / "trap"
        for made in (programs, self._marks):
            made.mkdir()

        _write_program(self.program, f"touch {self._marks / 'program'}")
        _write_program(programs / COMMAND, f"touch {self._marks / 'path'}")
        startup = programs / "startup"
        startup.write_text(f"touch {self._marks / 'startup'}\n")
        mark = self._marks / "python"
        (programs / "sitecustomize.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
        self.variables: dict[str, dict[str, str]] = {
            "PATH": {"PATH": f"{programs}:{os.environ['PATH']}"},
            "PYTHONPATH": {"PYTHONPATH": str(programs)},
            "BASH_ENV": {"BASH_ENV": str(startup)},
            "LD_DEBUG": {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(self._marks / "linker")},
            "LD_PRELOAD": {"LD_PRELOAD": str(programs / "trap.so")},
            "HOME": {"HOME": str(programs)},
        }
        """Variables of a profile that must not reach a plugin, by the first of them."""

    def marks(self) -> set[str]:
        """Return the marks that were left."""
        return {mark.name.partition(".")[0] for mark in self._marks.iterdir()}


def _write_program(file: Path, line: str) -> None:
    file.write_text(f"#!/bin/bash\n{line}\n")
    file.chmod(0o755)
