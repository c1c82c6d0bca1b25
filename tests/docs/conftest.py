"""A fleet for the pages, and for each page a folder and a shell in which its commands work."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import yaml

from hack.fleetlib import cachefolder
from hack.fleetlib import fleet as fleets
from hack.fleetlib.tools import binaries
from tests import decisions, inventory, ocm_placements, pages
from tests.chart import admiralty
from tests.docs import starting_states
from tests.docs.shell import Shell, shell
from tests.docs.starting_states import StartingState
from tests.fleets import clusters
from tests.kit import ROOT, Fleet
from vnode.api import kinds

HERE = Path(__file__).parent
_PROGRAMS = ("kubectl", "helm", "kube-scheduler")


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a fleet of three clusters, or that in $VNODE_TEST_FLEET, which stays."""
    *_, last = starting_states.CLUSTERS
    words = (*starting_states.CLUSTERS, "--agents", "--bare", last)
    with clusters(tmp_path_factory, *words) as fleet:
        yield _with_namespaces(fleet)


def _with_namespaces(fleet: Fleet) -> Fleet:
    for cluster in starting_states.CLUSTERS:
        fleet.kubectl(cluster, "apply", "-f", str(HERE / "namespaces.yaml"))

    return fleet


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for PATH, with the programs that most pages call."""
    folder = tmp_path_factory.mktemp("bin")
    link_programs(_PROGRAMS, folder)
    vnode = folder / "vnode"
    vnode.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m vnode "$@"\n')
    vnode.chmod(0o755)
    return folder


def link_programs(names: Iterable[str], folder: Path) -> None:
    for name, program in binaries.locate(names).items():
        (folder / name).symlink_to(program)


@pytest.fixture
def starting_state(page: Path) -> StartingState:
    return starting_states.STARTING_STATES.get(pages.name(page), StartingState())


@pytest.fixture
def folder(fleet: Fleet, starting_state: StartingState, tmp_path: Path) -> Iterator[Path]:
    """Yield the folder where the reader works: a clone of this repository.

    It also holds the reader's own kubeconfigs and files.
    """
    for thing in ROOT.iterdir():
        (tmp_path / thing.name).symlink_to(thing)

    for name, cluster in (starting_states.KUBECONFIGS | starting_state.kubeconfigs).items():
        config = yaml.safe_load(fleet.kubeconfig(cluster).read_text())
        config["contexts"][0]["context"]["namespace"] = starting_states.NAMESPACE
        (tmp_path / f"{name}.kubeconfig").write_text(yaml.safe_dump(config))

    for given in HERE.glob("*.yaml"):
        shutil.copy(given, tmp_path)

    if "clusterprofiles.yaml" in starting_state.given:
        (tmp_path / "clusterprofiles.yaml").write_text(yaml.safe_dump(inventory.crd()))

    if "placementdecisions.yaml" in starting_state.given:
        crds = [
            {"apiVersion": kinds.CRDS.api_version, "kind": kinds.CRDS.kind, **decisions.crd(kind)}
            for kind in (decisions.SIG, decisions.OCM)
        ]
        (tmp_path / "placementdecisions.yaml").write_text(yaml.safe_dump_all(crds))

    if "ocm.yaml" in starting_state.given:
        (tmp_path / "ocm.yaml").write_text(yaml.safe_dump_all(ocm_placements.crds()))

    own_programs = tmp_path / "own-programs"
    own_programs.mkdir()
    link_programs(starting_state.programs, own_programs)
    admiralty.chart(tmp_path)
    yield tmp_path
    for state in tmp_path.glob("*/state.json"):
        Fleet(state.parent).run("down")


@pytest.fixture
def reader(
    fleet: Fleet, starting_state: StartingState, folder: Path, programs: Path
) -> Iterator[Shell]:
    """Yield the reader's shell, in the starting state that the page expects."""
    target = (starting_states.KUBECONFIGS | starting_state.kubeconfigs)["target"]
    netns = fleets.LocalFleet(fleet.folder).state().cluster(target).netns
    path = [
        str(folder / "own-programs"),
        str(programs),
        str(Path(sys.executable).parent),
        os.environ["PATH"],
    ]
    environment = {
        "HOME": str(folder),
        "KUBECONFIG": str(folder / "source.kubeconfig"),
        "NO_COLOR": "1",
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": str(ROOT),
        "VNODE_CACHE": str(cachefolder.path()),
        "python": sys.executable,
    }
    with shell(folder, environment, netns if starting_state.inside else None) as bash:
        prepare(bash, starting_state.given)
        yield bash
        prepare(bash, starting_state.after)


def prepare(bash: Shell, script: str) -> None:
    """Run a script that is no part of the page, up to its first failure."""
    done = bash.run(f"(set -ex\n{script}\n)")
    assert done.code == 0, done.output


@pytest.fixture
def stands_for(fleet: Fleet, starting_state: StartingState, folder: Path) -> dict[str, str]:
    """Return what we write for each text that readers replace by their own."""
    target = (starting_states.KUBECONFIGS | starting_state.kubeconfigs)["target"]
    address = fleets.LocalFleet(fleet.folder).address(target)
    return starting_states.STANDS_FOR | {"192.0.2.2": address, "/tmp/": f"{folder}/"}
