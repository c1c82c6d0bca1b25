"""Commands of the documentation that its tests do not run, and where each is tried instead."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.pages import Command


class LeftOut(NamedTuple):
    """Commands that `pattern` matches at their beginning; `covered` is a file, or "" for none."""

    pattern: str
    why: str
    covered: str = ""


LEFT_OUT = (
    LeftOut("make test", "these tests are a part of it", "Makefile"),
    LeftOut("make demo", "`make test` runs it, too", "Makefile"),
    LeftOut("vnode quickstart", "its pods run the image", "tests/chart/test_quickstart.py"),
    LeftOut("make bench", "takes from minutes to hours, of a machine that is quiet"),
    LeftOut(r".*\bconformance\b", "builds a program, then takes minutes to an hour"),
    LeftOut(r"python=\$\(python3 hack/venv", "done: every target of make does it", "Makefile"),
    LeftOut(r"\$python -m pytest", "`make unit` and `make integration` do", "Makefile"),
    LeftOut(r".*/tmp/fleet\b", "`make e2e` makes this fleet", "tests/e2e/conftest.py"),
    LeftOut(
        r".*/tmp/inventory\b",
        "`make faults` makes this fleet",
        "tests/faults/test_inventory.py",
    ),
    LeftOut(r"hack/realnode-packages|.*/tmp/real\b", "installs programs", "tests/realnode"),
    LeftOut(r".*/tmp/mixed\b", "builds programs of another version", "tests/versions"),
    LeftOut(r"\$python -m pdb", "waits for what one types"),
    LeftOut(
        "vnode replace-target",
        "needs a cluster more, with an agent",
        "tests/faults/test_replaced_clusters.py",
    ),
    LeftOut("helm test", "its pod runs the image", "tests/chart/test_release.py"),
    LeftOut("hack/image", "installs programs, and takes minutes", "tests/image"),
    LeftOut("podman", "asks registries", "tests/image"),
    LeftOut("sha256sum|pipx install|kubectl krew", "needs artefacts", "tests/dist"),
    LeftOut("cosign|gh attestation", "nothing is published or signed here"),
    LeftOut("pip install", "asks a package index", "tests/unit/scheduling/test_registry.py"),
    LeftOut("kubectl apply -f queues.yaml", "needs Kueue", "tests/kueue/test_page.py"),
    LeftOut("kubectl apply -f check.yaml", "needs Kueue", "tests/kueue/test_page.py"),
    LeftOut("kubectl patch clusterqueue", "needs Kueue", "tests/kueue/queues.py"),
    LeftOut(
        "kubectl apply -f berlin.yaml",
        "needs an inventory",
        "tests/integration/test_cluster_profiles.py",
    ),
    LeftOut("kubectl top", "takes metrics-servers, and a minute", "tests/metrics_e2e"),
)


def is_left_out(command: Command) -> bool:
    """Tell whether a line of the table says so."""
    return any(re.match(line.pattern, command.joined) for line in LEFT_OUT)
