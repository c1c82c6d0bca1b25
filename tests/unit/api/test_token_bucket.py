from __future__ import annotations

from vnode.api.token_bucket import TokenBucket


def test_a_burst_passes_and_then_the_rate_holds():
    bucket = TokenBucket(2.0, 3)
    assert [bucket.take(100.0) for _ in range(4)] == [True, True, True, False]
    assert not bucket.take(100.4)
    assert bucket.take(100.5)
    assert not bucket.take(100.6)


def test_no_more_is_saved_than_one_burst():
    bucket = TokenBucket(2.0, 3)
    assert bucket.take(0.0)
    assert [bucket.take(1000.0) for _ in range(4)] == [True, True, True, False]


def test_a_wait_ends_when_a_token_can_be_taken():
    bucket = TokenBucket(2.0, 3)
    assert bucket.wait(0.0) == 0
    assert [bucket.take(0.0) for _ in range(3)] == [True] * 3
    assert bucket.wait(0.0) == 0.5
    assert bucket.wait(0.25) == 0.25
    assert not bucket.take(0.25)
    assert bucket.take(0.5)


def test_tokens_are_reserved_one_after_the_other_and_any_number_at_once():
    bucket = TokenBucket(2.0, 3)
    assert bucket.reserve(0.0, 3) == 0
    assert [bucket.reserve(0.0), bucket.reserve(0.0)] == [0.5, 1.0]
    assert bucket.reserve(1.0, 10) == 5.0
    assert not bucket.take(6.0)
    assert bucket.take(6.5)
