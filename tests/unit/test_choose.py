"""Which waiting jobs a node is given."""

from datetime import UTC, datetime
from uuid import UUID

import attrs

from tests.unit.nodes import CARD, CPU, need, node, reservation
from umbra_compute.model.jobs import Prefer
from umbra_compute.model.nodes import Model, Resident
from umbra_compute.model.placement import Head
from umbra_compute.policy.placement import choose, might_run, place

THEN = datetime(2026, 1, 1, tzinfo=UTC)


def line(*class_ids: int) -> list[Head]:
    return [
        Head(class_id=class_id, priority=100, not_before=THEN, seq=seq)
        for seq, class_id in enumerate(class_ids)
    ]


def test_jobs_that_fit_one_by_one_and_not_together_are_not_handed_out_together_n01() -> None:
    grants = choose(node(CARD), {1: need(vram_min_mb=5000)}, line(*[1] * 10), 10)
    assert [g.vram_mb for g in grants] == [5000, 5000]


def test_no_more_than_the_free_places_n01() -> None:
    busy = node(CPU, max_jobs=3, reservations=(reservation(1, device="cpu"),))
    assert len(choose(busy, {1: need()}, line(*[1] * 10), 10)) == 2


def test_what_does_not_fit_does_not_hold_back_what_does() -> None:
    needs = {1: need(vram_min_mb=99999), 2: need()}
    grants = choose(node(CPU), needs, line(1, 2, 1, 2), 10)
    assert [g.class_id for g in grants] == [2, 2]


def test_the_line_is_kept_over_all_classes() -> None:
    grants = choose(node(CPU), {1: need(), 2: need(kind="b")}, line(2, 1, 2), 2)
    assert [g.class_id for g in grants] == [2, 1]


def test_a_warm_device_is_preferred_and_only_the_wanted_model_makes_it_warm_s03() -> None:
    llm = Model(slug="llm", vram_min_mb=100)
    other = attrs.evolve(CARD, label="other")
    warm = node(other, CARD, residents=(Resident(slug="llm", device="other", vram_held_mb=100),))
    grant = place(warm, 1, need(llm))
    assert grant is not None
    assert (grant.device.label, grant.resident) == ("other", True)
    cold = node(CARD, residents=(Resident(slug="another", device="card"),))
    grant = place(cold, 1, need(llm))
    assert grant is not None
    assert not grant.resident


def test_a_preferred_node_is_told_by_the_reason() -> None:
    for prefer in (Prefer(node="n1"), Prefer(node=str(UUID(int=1))), Prefer(locality="attic")):
        grant = place(node(CPU, locality="attic"), 1, need(prefer=prefer))
        assert grant is not None
        assert grant.reason == "local_affinity:cpu"
    elsewhere = place(node(CPU), 1, need(prefer=Prefer(locality="attic")))
    assert elsewhere is not None
    assert elsewhere.reason == "placed:cpu"


def test_a_score_is_the_product_of_its_parts() -> None:
    grant = place(node(attrs.evolve(CPU, throughput_factor=2.0)), 1, need(vram_min_mb=10))
    assert grant is not None
    assert dict(grant.score.parts) == {
        "throughput": 2.0,
        "resident": 1.0,
        "affine": 1.0,
        "slow_path": 0.5,
    }
    assert grant.score.value == 1.0


def test_a_node_that_is_only_full_might_run_it_later() -> None:
    assert might_run(node(CPU, max_jobs=0), need())
    assert not might_run(node(CPU), need(accelerators=("cuda",)))
