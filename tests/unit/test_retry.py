import pytest
from hypothesis import given
from hypothesis import strategies as st

from umbra_compute.policy.retry import backoff_s

attempts = st.integers(min_value=1, max_value=100_000)
jitters = st.floats(min_value=-1, max_value=1)


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 5), (2, 10), (7, 320), (8, 600), (5000, 600)])
def test_the_wait_doubles_up_to_the_cap(attempt: int, seconds: float) -> None:
    assert backoff_s(attempt, jitter=0.0) == seconds


@given(attempts, jitters)
def test_jitter_moves_the_wait_by_a_tenth_at_most(attempt: int, jitter: float) -> None:
    middle = backoff_s(attempt, 0.0)
    assert middle * 0.9 <= backoff_s(attempt, jitter) <= middle * 1.1


@pytest.mark.parametrize(("attempt", "jitter"), [(0, 0.0), (1, 1.01), (1, float("nan"))])
def test_values_out_of_range_are_refused(attempt: int, jitter: float) -> None:
    with pytest.raises(ValueError):
        backoff_s(attempt, jitter)
