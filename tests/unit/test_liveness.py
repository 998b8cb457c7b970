"""How long a node may be silent."""

import pytest

from umbra_compute.policy import liveness


@pytest.mark.parametrize(
    ("kept_s", "promised_s"), [(None, 15.0), (1.0, 15.0), (15.0, 15.0), (60.0, 60.0)]
)
def test_a_node_is_promised_its_own_rhythm_only_if_that_is_slower(
    kept_s: float | None, promised_s: float
) -> None:
    assert liveness.interval_s(kept_s, default_s=15.0) == promised_s
