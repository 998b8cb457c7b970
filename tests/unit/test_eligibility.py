"""Whether a job can run on a device at all, and every reason against."""

from uuid import UUID

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.nodes import CARD, CPU, need, node, reservation
from umbra_compute.model.jobs import Requires
from umbra_compute.model.nodes import Device, LeaseUse, Model, NodeStatus, Resident
from umbra_compute.model.placement import ClassRow, Need, NodeView, Scope, Verdict
from umbra_compute.policy.eligibility import verdicts
from umbra_compute.policy.memory import Ledger, room_on
from umbra_compute.policy.needs import need_of
from umbra_compute.policy.placement import place


def against(asked: Need, view: NodeView, device: Device) -> tuple[Verdict, ...]:
    return verdicts(asked, view, device, room_on(view, Ledger.of(view), device, asked.models))


def test_every_reason_is_told_not_the_first_p07() -> None:
    small = attrs.evolve(CARD, vram_total_mb=8000, vram_free_mb=8000, supports_accelerators=())
    told = against(
        need(trust_domains=("local",), accelerators=("cuda",), vram_min_mb=16000),
        node(small, trust_domain="lab"),
        small,
    )
    assert [(v.code, v.scope) for v in told] == [
        ("trust_domain", Scope.STATIC),
        ("accelerators", Scope.STATIC),
        ("vram", Scope.STATIC),
    ]
    assert (told[2].need, told[2].have) == (16000, 8000)


def test_memory_that_strangers_use_is_not_there_p01() -> None:
    taken = attrs.evolve(CARD, vram_total_mb=24564, vram_free_mb=1200)
    [told] = against(need(vram_min_mb=8000), node(taken), taken)
    assert (told.scope, told.need, told.have) == (Scope.CAPACITY, 8000, 1200)


def test_a_processor_carries_a_model_by_its_ram_and_says_so_p04() -> None:
    grant = place(node(CPU), 1, need(vram_min_mb=4000))
    assert grant is not None
    assert (grant.reason, grant.ram_mb, grant.vram_mb) == ("placed:slow_path:ram_not_vram", 4000, 0)


def test_a_full_card_takes_a_job_that_needs_only_ram_p04() -> None:
    full = attrs.evolve(CARD, vram_free_mb=0)
    grant = place(node(full), 1, need(ram_min_mb=5000))
    assert grant is not None
    assert (grant.ram_mb, grant.vram_mb) == (5000, 0)


def test_a_card_never_falls_back_to_system_ram_p04() -> None:
    full = attrs.evolve(CARD, vram_free_mb=0)
    [told] = against(need(vram_min_mb=4000), node(full), full)
    assert (told.code, told.scope) == ("vram", Scope.CAPACITY)


@pytest.mark.parametrize("asked", [need(vram_min_mb=1), need(ram_min_mb=1)])
def test_unknown_memory_never_passes_a_test_that_needs_memory(asked: Need) -> None:
    unknown = Device(label="cpu", kind=CPU.kind)
    [told] = against(asked, node(unknown), unknown)
    assert (told.need, told.have) == (1, None)


def test_zero_memory_is_known_and_asks_for_nothing() -> None:
    unknown = Device(label="cpu", kind=CPU.kind)
    assert against(need(ram_min_mb=0, vram_min_mb=0), node(unknown), unknown) == ()


def test_an_integrated_gpu_without_vram_of_its_own_is_eligible_by_ram_s05() -> None:
    unified = Device(
        label="igpu", kind=CPU.kind.GPU_INTEGRATED, ram_total_mb=120000, ram_free_mb=90000
    )
    assert against(need(vram_min_mb=30000), node(unified), unified) == ()


def test_a_resident_model_counts_its_own_memory_in_its_favour_s04() -> None:
    card = attrs.evolve(CARD, vram_free_mb=5000)
    llm = Model(slug="llm", vram_min_mb=6000)
    assert against(need(llm), node(card), card) != ()
    warm = node(card, residents=(Resident(slug="llm", device="card", vram_held_mb=7000),))
    assert against(need(llm), warm, card) == ()


def test_floors_are_the_largest_of_the_job_and_its_models() -> None:
    asked = need(
        Model(slug="a", vram_min_mb=6000),
        Model(slug="b", vram_min_mb=9000, ram_min_mb=100, requires_accelerators=("cuda",)),
        vram_min_mb=7000,
    )
    assert (asked.vram_floor_mb, asked.ram_floor_mb) == (9000, 100)
    assert asked.accelerators == {"cuda"}


def test_a_vram_floor_alone_is_the_ram_floor_too() -> None:
    assert need(vram_min_mb=7000).ram_floor_mb == 7000


def test_a_model_that_nobody_registered_is_a_static_reason() -> None:
    asked = ClassRow(
        id=1, kind="k", requires=Requires(models=("x",)), prefer=need().prefer, models=()
    )
    [told] = against(need_of(asked), node(CPU), CPU)
    assert (told.code, told.scope, told.need) == ("unknown_model", Scope.STATIC, ["x"])


@pytest.mark.parametrize(
    ("fields", "code", "scope"),
    [
        ({"kinds": frozenset({"other"})}, "kind", Scope.STATIC),
        ({"status": NodeStatus.DRAINING}, "draining", Scope.STATE),
        ({"fresh": False}, "offline", Scope.STATE),
        ({"max_jobs": 0}, "slots", Scope.CAPACITY),
    ],
)
def test_the_node_itself_may_be_the_reason(
    fields: dict[str, object], code: str, scope: Scope
) -> None:
    [told] = against(need(), node(CPU, **fields), CPU)
    assert (told.code, told.scope) == (code, scope)


def test_an_unhealthy_device_is_told_with_its_reason() -> None:
    ill = attrs.evolve(CARD, healthy=False, health_reason="GPU is lost")
    [told] = against(need(), node(ill), ill)
    assert (told.code, told.scope, told.have) == ("unhealthy", Scope.STATE, "GPU is lost")


def test_what_the_report_shows_already_is_not_subtracted_again_p02() -> None:
    held = (reservation(1, vram_mb=10000), reservation(2, vram_mb=10000))
    card = attrs.evolve(CARD, vram_total_mb=24000, vram_free_mb=24000)
    between = node(card, reservations=held)
    assert room_on(between, Ledger.of(between), card, ()).vram_mb == 4000
    shown = attrs.evolve(card, vram_free_mb=4000)
    uses = tuple(LeaseUse(lease_id=UUID(int=n), vram_used_mb=10000) for n in (1, 2))
    after = node(shown, reservations=held, uses=uses)
    assert room_on(after, Ledger.of(after), shown, ()).vram_mb == 4000


def test_what_is_promised_is_not_free_whatever_the_report_says_u5() -> None:
    card = attrs.evolve(CARD, vram_total_mb=24000, vram_free_mb=24000)
    held = (reservation(1, vram_mb=10000),)
    idle = (LeaseUse(lease_id=UUID(int=1), vram_used_mb=10000),)  # freed since, and still promised
    view = node(card, reservations=held, uses=idle)
    assert room_on(view, Ledger.of(view), card, ()).vram_mb == 14000


def test_ram_is_shared_by_all_devices_of_a_node() -> None:
    held = (reservation(1, device="other", ram_mb=30000),)
    view = node(CPU, reservations=held)
    assert room_on(view, Ledger.of(view), CPU, ()).ram_mb == 2000


memory = st.none() | st.integers(min_value=0, max_value=50_000)


@st.composite
def devices(draw: st.DrawFn) -> Device:
    return Device(
        label=draw(st.sampled_from(["a", "b", "c"])),
        kind=draw(st.sampled_from(list(type(CPU.kind)))),
        vram_total_mb=draw(memory),
        vram_free_mb=draw(memory),
        ram_total_mb=draw(memory),
        ram_free_mb=draw(memory),
        supports_accelerators=tuple(draw(st.sets(st.sampled_from(["cuda", "metal"])))),
        healthy=draw(st.booleans()),
    )


@st.composite
def needs(draw: st.DrawFn) -> Need:
    floor = st.none() | st.integers(min_value=0, max_value=50_000)
    return need(
        vram_min_mb=draw(floor),
        ram_min_mb=draw(floor),
        accelerators=tuple(draw(st.sets(st.sampled_from(["cuda", "metal"])))),
    )


@given(needs(), devices(), st.integers(min_value=0, max_value=50_000))
def test_more_memory_never_makes_an_eligible_job_ineligible(
    asked: Need, device: Device, more: int
) -> None:
    def grown(figure: int | None) -> int | None:
        return None if figure is None else figure + more

    larger = attrs.evolve(
        device,
        vram_total_mb=grown(device.vram_total_mb),
        vram_free_mb=grown(device.vram_free_mb),
        ram_total_mb=grown(device.ram_total_mb),
        ram_free_mb=grown(device.ram_free_mb),
    )
    if not against(asked, node(device), device):
        assert not against(asked, node(larger), larger)


@given(needs(), devices(), devices())
def test_another_device_never_makes_an_eligible_job_ineligible(
    asked: Need, device: Device, other: Device
) -> None:
    if place(node(device), 1, asked) is not None:
        assert place(node(device, other), 1, asked) is not None


@given(needs(), st.lists(devices(), max_size=4, unique_by=lambda d: d.label))
def test_the_order_of_devices_does_not_change_the_choice(
    asked: Need, several: list[Device]
) -> None:
    assert place(node(*several), 1, asked) == place(node(*reversed(several)), 1, asked)
