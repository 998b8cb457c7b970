"""What a heartbeat brings that was not known."""

from typing import Any
from uuid import UUID

import attrs
import pytest

from umbra_compute.model.nodes import Device, DeviceKind, Known, NodeStatus, Report, Resident
from umbra_compute.model.nodes import ResidentState as State
from umbra_compute.policy import reports

AGENT, OTHER = UUID(int=1), UUID(int=2)
KNOWN = Known(
    id=UUID(int=3),
    organization_id=UUID(int=4),
    status=NodeStatus.ONLINE,
    agent_instance_id=AGENT,
    heartbeat_sequence=5,
    max_jobs=2,
    kinds=("k",),
)
CARD = Device(label="card", kind=DeviceKind.GPU_DISCRETE, vram_free_mb=0)
CPU = Device(label="cpu", kind=DeviceKind.CPU)
MODEL = Resident(slug="m", device="card", last_used_s=10.0)
BARE = Resident(slug="a")


def report(**told: Any) -> Report:
    fields = {"agent_version": "1", "agent_instance_id": AGENT, "sequence": 6, **told}
    return Report(**fields)


def news(told: Report, known: Known = KNOWN) -> reports.News:
    return reports.news(known, (CARD, CPU), (MODEL, BARE), told)


NOTHING = reports.News(devices=False, residents=False, placement=False)


@pytest.mark.parametrize(
    ("sequence", "instance", "old"),
    [(4, AGENT, True), (5, AGENT, True), (6, AGENT, False), (0, OTHER, False), (9, OTHER, False)],
)
def test_only_the_same_process_can_repeat_itself(sequence: int, instance: UUID, old: bool) -> None:
    assert reports.is_old(KNOWN, report(sequence=sequence, agent_instance_id=instance)) is old


def test_the_first_word_of_a_node_is_neither_old_nor_a_restart() -> None:
    silent = attrs.evolve(KNOWN, agent_instance_id=None, heartbeat_sequence=None)
    assert not reports.is_old(silent, report(sequence=0))
    assert not reports.is_restart(silent, report(sequence=0))


def test_another_process_is_a_restart_and_the_same_is_not() -> None:
    assert reports.is_restart(KNOWN, report(agent_instance_id=OTHER))
    assert not reports.is_restart(KNOWN, report())


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"devices": (CARD, CPU), "max_jobs": 2, "kinds": ("k",), "kinds_given": True},
        {"residents": (BARE, MODEL)},  # in any order
        {"residents": (attrs.evolve(MODEL, last_used_s=10.9), BARE)},
        {"measurements": {"load_avg_1m": 1.0}, "active_jobs": 3, "leases": ()},
    ],
)
def test_what_is_known_or_left_out_is_no_news(told: dict[str, Any]) -> None:
    assert news(report(**told)) == NOTHING


@pytest.mark.parametrize(
    "devices", [(), (CARD,), (CPU, CARD), (attrs.evolve(CARD, vram_free_mb=None), CPU)]
)
def test_a_device_gone_moved_or_of_unknown_memory_is_news_s09_u10(
    devices: tuple[Device, ...],
) -> None:
    told = news(report(devices=devices))
    assert told == attrs.evolve(NOTHING, devices=True, placement=True)


@pytest.mark.parametrize(
    "residents",
    [
        (),
        (MODEL,),
        (attrs.evolve(MODEL, device=None), BARE),
        (attrs.evolve(MODEL, busy=True), BARE),
        (attrs.evolve(MODEL, state=State.UNLOADING), BARE),
        (attrs.evolve(MODEL, vram_held_mb=0), BARE),
    ],
)
def test_a_model_that_stands_otherwise_is_news(residents: tuple[Resident, ...]) -> None:
    told = news(report(residents=residents))
    assert told == attrs.evolve(NOTHING, residents=True, placement=True)


@pytest.mark.parametrize("used_s", [0.0, 8.9, 11.1, None])
def test_another_use_of_a_model_is_stored_and_is_nothing_to_placement(
    used_s: float | None,
) -> None:
    told = news(report(residents=(attrs.evolve(MODEL, last_used_s=used_s), BARE)))
    assert told == attrs.evolve(NOTHING, residents=True)


@pytest.mark.parametrize(
    "told",
    [
        {"max_jobs": 0},
        {"kinds": None, "kinds_given": True},
        {"kinds": (), "kinds_given": True},
    ],
)
def test_slots_and_kinds_are_news_to_placement(told: dict[str, Any]) -> None:
    assert news(report(**told)) == attrs.evolve(NOTHING, placement=True)


@pytest.mark.parametrize("status", NodeStatus)
def test_being_lifted_is_news_to_placement_i24(status: NodeStatus) -> None:
    lifted = status in (NodeStatus.PROVISIONING, NodeStatus.OFFLINE)
    told = news(report(), attrs.evolve(KNOWN, status=status))
    assert told == attrs.evolve(NOTHING, placement=lifted)
