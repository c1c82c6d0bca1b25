"""`hack/bench-policies`: what policies of one namespace cost all others, and one of many its agent.

Runs whole agents against API servers in memory, where a tenant has many pods and costly policies of
which one is patched all the time (`policy_tenant`). Then it measures the CPU time of single changes
among thousands of policies (`policy_changes`). Nothing has to be installed or taken down.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from hack.fleetlib import progress
from tests.bench import policy_changes, policy_tenant, results
from tests.bench.policy_figures import PoliciesRun, text
from vnode import __version__


def parser() -> argparse.ArgumentParser:
    """Return the options; there is no need for any."""
    found = results.parser("hack/bench-policies", __doc__, "policies-")
    found.add_argument("--pods", type=int, default=300, help="of the tenant (300)")
    found.add_argument("--policies", type=int, default=150, help="of the tenant (150)")
    found.add_argument("--seconds", type=float, default=30, help="of patches (30)")
    found.add_argument("--rate", type=float, default=5, help="patches a second (5)")
    found.add_argument("--many-pods", type=int, default=10_000, help="of all tenants (10,000)")
    found.add_argument("--many-policies", type=int, default=5000, help="of all tenants (5,000)")
    found.add_argument("--namespaces", type=int, default=100, help="of these (100)")
    found.add_argument("--changes", type=int, default=100, help="of one of these each (100)")
    return found


def measure(options: argparse.Namespace) -> PoliciesRun:
    """Make all measurements of the benchmark, one after the other."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    with tempfile.TemporaryDirectory(prefix="vnode-bench-") as folder:
        stages = asyncio.run(
            policy_tenant.stages(
                Path(folder), options.pods, options.policies, options.seconds, options.rate
            )
        )

    progress.say(f"{options.many_policies} policies, {options.many_pods} pods ...")
    changes = policy_changes.changes(
        options.many_pods, options.many_policies, options.namespaces, options.changes
    )
    return PoliciesRun(
        started=started,
        cores=os.cpu_count() or 0,
        python=platform.python_version(),
        vnode=__version__,
        pods=options.pods,
        policies=options.policies,
        stages=stages,
        changes=changes,
    )


def main(argv: list[str] | None = None) -> int:
    """Measure and print; 1 if an aim was missed."""
    options = parser().parse_args(argv)
    try:
        run = measure(options)
    except KeyboardInterrupt:
        return 130

    results.save(run, text(run), options.json)
    return 0 if all(aim.reached for aim in run.aims) else 1


if __name__ == "__main__":
    sys.exit(main())
