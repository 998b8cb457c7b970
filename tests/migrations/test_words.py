"""The words that the schema allows are the words that the code knows."""

import re
from enum import StrEnum

import pytest

from umbra_compute.db import Pool
from umbra_compute.model.jobs import Event, JobState
from umbra_compute.model.nodes import DeviceKind, NodeStatus, ResidentState


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        ("compute_nodes_status_check", NodeStatus),
        ("compute_devices_kind_check", DeviceKind),
        ("node_models_state_check", ResidentState),
        ("jobs_state_check", JobState),
        ("job_events_event_check", Event),
    ],
)
async def test_a_column_takes_the_words_of_its_enum_and_no_others(
    pool: Pool, constraint: str, words: type[StrEnum]
) -> None:
    text = await pool.fetchval(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = $1", constraint
    )
    assert sorted(re.findall(r"'(\w+)'::text", text)) == sorted(words)
