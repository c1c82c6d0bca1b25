from __future__ import annotations

from vnode.runtime.token_bucket import TokenBucket


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
