"""Which versions of Kubernetes are tried together, and by which tests. Pure.

A combination is the version of the source, c1, and of its targets, c2 and c3. Each minor is tried
as a source and as a target beside the newest, which is the usual one, and the oldest and the newest
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hack.fleetlib.tools import kubernetes

OLDEST: Final = kubernetes.VERSIONS[0]
NEWEST: Final = kubernetes.VERSIONS[-1]


@dataclass(frozen=True, slots=True)
class Combination:
    """The releases of a fleet's clusters; if c2 and c3 differ, a pod can choose."""

    source: str
    target: str
    other_target: str

    @property
    def words(self) -> list[str]:
        """Return the options of `hack/fleet up`."""
        of = {"c1": self.source, "c2": self.target, "c3": self.other_target}
        return [word for name, one in of.items() for word in ("--kubernetes", f"{name}={one}")]

    def __str__(self) -> str:
        """Write the minors: `1.37 to 1.33 and 1.37`."""
        targets = dict.fromkeys((self.target, self.other_target))
        return f"{minor(self.source)} to {' and '.join(map(minor, targets))}"


MIXED: Final = Combination(NEWEST, OLDEST, NEWEST)
"""What `make test` runs: c2 is older than the source, and pods can go to c3 instead."""


def minor(version: str) -> str:
    """Return the minor of a release."""
    return version.rpartition(".")[0]


def matrix() -> list[Combination]:
    """Return all combinations that are tried, those of which most is feared first."""
    between = kubernetes.VERSIONS[1:-1]
    return [
        Combination(NEWEST, OLDEST, OLDEST),
        Combination(OLDEST, NEWEST, NEWEST),
        *(Combination(version, version, version) for version in (OLDEST, NEWEST)),
        *(Combination(version, NEWEST, NEWEST) for version in between),
        *(Combination(NEWEST, version, version) for version in between),
    ]


BRIEF: Final = (
    "tests/versions",
    "tests/e2e/test_pods.py::test_an_annotated_pod_runs_in_a_target_and_shows_its_state",
    "tests/e2e/test_pods.py::test_a_deployment_spreads_over_the_targets",
    "tests/e2e/test_pods.py::test_a_job_completes",
    "tests/e2e/test_streams.py",
    "tests/e2e/test_ends.py::test_deleting_the_proxy_ends_everything",
    "tests/e2e/test_changes.py::test_resources_are_resized_in_place",
    "tests/e2e/test_following.py::test_what_a_pod_refers_to_is_there_before_its_candidate",
    "tests/e2e/test_quotas.py::test_a_burst_fills_the_quotas_of_all_targets_and_nothing_is_sent_beyond",
    "tests/e2e/test_placement.py::test_a_deployment_is_divided_by_weight_grows_and_shrinks",
    "tests/e2e/test_devices.py",
)
"""What `make test` runs on one mixed fleet: a minute or two."""

CHOSEN: Final = (
    "tests/versions",
    *(
        f"tests/e2e/test_{subject}.py"
        for subject in (
            "pods",
            "streams",
            "changes",
            "following",
            "quotas",
            "devices",
            "gangs",
            "overrides",
            "cli_doctor",
        )
    ),
    "tests/e2e/test_ends.py::test_deleting_the_proxy_ends_everything",
    "tests/e2e/test_ends.py::test_a_job_that_waits_for_ends_replaces_a_pod_that_was_deleted",
    "tests/e2e/test_moves.py::test_pods_go_back_are_drained_and_rebalanced",
    "tests/e2e/test_nodes.py::test_a_node_offers_what_its_target_has",
    "tests/e2e/test_nodes.py::test_a_node_declares_what_all_nodes_of_its_target_do",
    "tests/e2e/test_placement.py::test_a_deployment_is_divided_by_weight_grows_and_shrinks",
    "tests/e2e/test_preemption.py::test_the_least_harm_is_done_in_one_target_and_none_to_equals",
    "tests/e2e/test_services.py::test_a_service_and_its_ingress_go_where_its_pods_are",
    "tests/e2e/test_services.py::test_what_the_target_fills_in_stays_in_a_copy_that_changes",
    "tests/e2e/test_tokens.py::test_a_pod_whose_account_gives_no_token_has_none_of_the_targets_either",
)
"""What `make versions` runs on each combination: five minutes, so that all ten take an hour."""
