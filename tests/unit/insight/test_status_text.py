"""The status of pods, and ages of malformed timestamps."""

from datetime import UTC, datetime

import pytest

from vnode.api.objects import Object
from vnode.insight import status_text


def test_a_time_without_a_zone_is_taken_for_utc() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert status_text.age("2026-01-02T03:04:00", now) == "5s"


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([{"terminated": {"exitCode": 3}}], "ExitCode:3"),
        ([{"terminated": {"exitCode": 137, "signal": 9}}], "Signal:9"),
        ([{"terminated": {"exitCode": 0, "reason": "Completed"}}, {"running": {}}], "Running"),
        ([{"terminated": {"exitCode": 1, "reason": "Error"}}, {"running": {}}], "Error"),
        ([{"waiting": {"reason": "ErrImagePull"}}, {"waiting": {"reason": "B"}}], "ErrImagePull"),
    ],
)
def test_a_pod_has_the_status_that_kubectl_gives_it(states: list[Object], expected: str) -> None:
    statuses = [{"name": str(number), "state": state} for number, state in enumerate(states)]
    assert (
        status_text.pod_status({"status": {"phase": "Running", "containerStatuses": statuses}})
        == expected
    )
