"""Counters from rates and from counters: whoever divides two points gets what was read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.kubelet.usage import points
from vnode.kubelet.usage.points import Point, Rate, Total

CORES = st.floats(0, 1000, allow_nan=False)
GAPS = st.floats(0.1, 300, allow_nan=False)


@given(st.lists(st.tuples(GAPS, CORES), min_size=2, max_size=20))
def test_two_points_of_rates_give_the_later_rate(readings: list[tuple[float, float]]):
    time, point = 1.7e9, None
    for gap, cores in readings:
        time += gap
        before, point = point, points.advance(point, Rate(time, 15.0, cores, 1))
        if before is not None:
            rate = (point.cpu - before.cpu) / (point.time - before.time)
            assert rate == pytest.approx(cores, abs=1e-3)


@given(st.lists(st.tuples(st.floats(-100, 100), CORES), min_size=1, max_size=20))
def test_a_counter_of_rates_never_falls_and_is_never_zero(readings: list[tuple[float, float]]):
    time, point = 1.7e9, None
    for step, cores in readings:
        time += step
        before, point = point, points.advance(point, Rate(time, 15.0, cores, 1))
        assert point.cpu > 0
        if before is not None:
            assert point.cpu >= before.cpu
            assert point.time >= before.time


def test_a_first_rate_counts_for_its_window():
    point = points.advance(None, Rate(100.0, 10.0, 0.5, 7))
    assert point == Point(100.0, point.cpu, 0.5, 7)
    assert point.cpu == pytest.approx(5.0, abs=1e-5)


@pytest.mark.parametrize("reading", [Rate(50.0, 10.0, 9.0, 1), Total(50.0, 9.0, 1)])
def test_a_reading_that_is_not_newer_changes_nothing(reading: points.Reading):
    former = Point(50.0, 3.0, 0.1, 2)
    assert points.advance(former, reading) is former


def test_a_kubelets_counter_is_passed_on_and_gives_the_rate():
    first = points.advance(None, Total(100.0, 40.0, 5))
    second = points.advance(first, Total(110.0, 45.0, 6))

    assert first == Point(100.0, 40.0, None, 5)
    assert second == Point(110.0, 45.0, 0.5, 6)


def test_a_kubelets_counter_that_began_anew_has_no_rate():
    assert points.advance(Point(100.0, 40.0, 1.0, 5), Total(110.0, 1.0, 6)).cores is None


def test_a_rate_over_more_than_a_containers_life_counts_for_its_life():
    assert points.clip(95.0, Rate(100.0, 30.0, 1.0, 1)) == Rate(100.0, 5.0, 1.0, 1)


def test_what_is_older_than_its_container_is_about_another_one():
    assert points.clip(101.0, Rate(100.0, 30.0, 1.0, 1)) is None
    assert points.clip(101.0, Total(100.0, 30.0, 1)) is None


def test_a_sum_takes_rates_that_are_known():
    some = [Point(10.0, 1e6, 0.5, 100), Point(12.0, 3.0, 1.0, 200), Point(12.0, 9.0, None, 400)]

    assert points.sum_rates(some) == Rate(12.0, 0.0, 1.5, 300)
    assert points.sum_rates(some[2:]) is None
    assert points.sum_rates([]) is None
