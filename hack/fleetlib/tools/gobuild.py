"""Builds programs from their Go modules with nothing but the Go toolchain.

`go install module@version` refuses modules with replacements (Kubernetes, etcd), so a throw-away
main module is written that requires the module and repeats the replacements in a usable form. A
module that says so is built in its own folder instead, which stays as it is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hack.fleetlib import progress
from hack.fleetlib.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hack.fleetlib.tools.definitions import Module, Tool

_REPLACEMENT = re.compile(
    r"^[ \t]*(?:replace[ \t]+)?(\S+)(?:[ \t]+v\S+)?[ \t]*=>[ \t]*(\S+)(?:[ \t]+(v\S+))?",
    re.MULTILINE,
)
_GO_LINE = re.compile(r"^go\s+(\S+)", re.MULTILINE)


def go_mod(module: Module, its_go_mod: str) -> str:
    """Return the go.mod of a main module that builds `module` as its authors do.

    Replacements by another module are copied; those by a staging folder become the staging version;
    other folders (siblings in a repository, published under their own paths) need no replacement.
    """
    go = _GO_LINE.search(its_go_mod)
    if go is None:
        raise FleetError(f"the go.mod of {module.path} {module.version} names no Go version")
    replaced = []
    for path, target, version in _REPLACEMENT.findall(its_go_mod):
        if version:
            replaced.append(f"\t{path} => {target} {version}\n")
        elif module.staging and target.startswith("./staging/"):
            replaced.append(f"\t{path} => {path} {module.staging}\n")
    replacements = f"\nreplace (\n{''.join(sorted(set(replaced)))})\n" if replaced else ""
    head = f"module tools.local/build\n\ngo {go.group(1)}\n"
    return f"{head}\nrequire {module.path} {module.version}\n{replacements}"


def linker_flags(module: Module) -> str:
    """Return the linker's flags for small binaries that know their version."""
    return " ".join(["-s -w", *(f"-X {name}={value}" for name, value in module.stamps)])


def environment(environ: Mapping[str, str], *, may_write: bool = True) -> dict[str, str]:
    """Return the builder's environment, lest a user's GOFLAGS or workspace change the outcome.

    `may_write` for a main module of ours, whose requirements are completed as it is built.
    Compilers collect garbage less often, and use all cores, whatever programs of tests are told.
    """
    flags = f"-mod={'mod' if may_write else 'readonly'} -buildvcs=false"
    ours = {"CGO_ENABLED": "0", "GOFLAGS": flags, "GOGC": "400", "GOWORK": "off"}
    return {**{name: value for name, value in environ.items() if name != "GOMAXPROCS"}, **ours}


def build(tools: Sequence[Tool], destination: Path) -> None:
    """Build `tools`, all of one module, into the existing folder `destination`."""
    if shutil.which("go") is None:
        raise FleetError("no Go toolchain on PATH: install Go 1.26 or newer, or set KUBE_BIN_DIR")
    module = tools[0].module
    with tempfile.TemporaryDirectory(prefix="vnode-build-") as folder:
        if module.in_place:
            main = Path(_download(module, folder)["Dir"])
        else:
            main = Path(folder)
            (main / "go.mod").write_text(go_mod(module, _its_go_mod(module, folder)))

        names = ", ".join(tool.name for tool in tools)
        compiled: list[str] = []
        with progress.reported(
            f"building {names} {module.version} with Go",
            # Go names no packages when it makes a program of tests.
            lambda: f"{len(compiled)} packages" if compiled else "",
        ):
            for tool in tools:
                _build_one(tool, main, destination, compiled)


def source(module: Module) -> Path:
    """Return the folder with the files of a module, downloaded first if need be."""
    with tempfile.TemporaryDirectory(prefix="vnode-build-") as folder:
        return Path(_download(module, folder)["Dir"])


def _its_go_mod(module: Module, folder: str) -> str:
    return Path(_download(module, folder)["GoMod"]).read_text()


def _download(module: Module, folder: str) -> dict[str, str]:
    command = ["go", "mod", "download", "-json", f"{module.path}@{module.version}"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    answer = json.loads(done.stdout) if done.stdout.strip() else {}
    if done.returncode != 0 or answer.get("Error"):
        reason = answer.get("Error") or done.stderr.strip()
        raise FleetError(f"cannot download the Go module {module.path} {module.version}: {reason}")
    return answer


def command(tool: Tool, destination: Path) -> list[str]:
    """Return the command that builds `tool` into a folder."""
    # `go test` vets every package that it compiles for the first time, which takes far longer.
    verb = ["test", "-c", "-vet=off"] if tool.tests else ["build"]
    output = destination / tool.name
    # The linker drops what debuggers read, so that nothing has to write it.
    flags = ["-v", "-trimpath", "-gcflags", "all=-dwarf=false"]
    flags += ["-ldflags", linker_flags(tool.module), "-o", str(output)]
    flags += ["-tags", ",".join(tool.module.tags)] if tool.module.tags else []
    return ["go", *verb, *flags, tool.package]


def _build_one(tool: Tool, folder: Path, destination: Path, compiled: list[str]) -> None:
    # Tests that run meanwhile measure time: a build takes what they leave.
    politely = ["nice", "-n", "10"] if shutil.which("nice") else []
    with subprocess.Popen(
        [*politely, *command(tool, destination)],
        cwd=folder,
        env=environment(os.environ, may_write=not tool.module.in_place),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            lines = list(_watched(process, compiled))
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        tail = "\n".join(lines[-20:])
        raise FleetError(f"building {tool.name} {tool.version} failed:\n{tail}")


def _watched(process: subprocess.Popen[str], compiled: list[str]) -> list[str]:
    lines = []
    for line in process.stderr or ():
        lines.append(line.rstrip())
        if not line.startswith("go: "):
            compiled.append(line)
    return lines
