"""What all tests share."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from tests import failures

# Tests that other modules import, which pytest does not expect to have assertions.
for part in ("", "_deletes", "_pods", "_reads", "_writes"):
    pytest.register_assert_rewrite(f"tests.apiserver.contract{part}")

# Otherwise pytest-asyncio asks for "the" loop before its first test, and before Python 3.14 asking
# makes one that nobody closes.
asyncio.set_event_loop(None)

# How long an example takes says more about the machine than about the code.
settings.register_profile(
    "vnode", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
# `make unit` is waited for. `make coverage`, in which each example takes three times as long, is
# for releases. `pytest` alone takes a hundred examples.
settings.register_profile("quick", settings.get_profile("vnode"), max_examples=15)
settings.register_profile("traced", settings.get_profile("vnode"), max_examples=30)
settings.load_profile("vnode")

# Thousands of tests and hundreds of modules stay: looking through them took a tenth of the time.
gc.set_threshold(10_000, 20, 50)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Have failures explained while their fleets are there."""
    report = yield
    failures.explain(item, report)
    return report
