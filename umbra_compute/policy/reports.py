"""What a heartbeat brings that was not known. Source: SPEC §7, heartbeat."""

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from umbra_compute.model.nodes import Device, Known, NodeStatus, Report, Resident

LIFTED: Final = (NodeStatus.PROVISIONING, NodeStatus.OFFLINE)
"""What a heartbeat makes online (I24). A drain and a retirement are an administrator's."""

LAST_USED_SLACK_S: Final = 1.0
"""Ages are told relative to the report, whose way here takes a moment: less is no other use."""


@attrs.frozen(kw_only=True)
class News:
    """What differs from what is stored."""

    devices: bool
    residents: bool
    placement: bool
    """Anything that placement looks at: when a model was last used is not part of it."""


def is_old(known: Known, report: Report) -> bool:
    """Tell whether the same process has said this, or something later, before."""
    return (
        known.agent_instance_id == report.agent_instance_id
        and known.heartbeat_sequence is not None
        and report.sequence <= known.heartbeat_sequence
    )


def is_restart(known: Known, report: Report) -> bool:
    """Tell whether another process speaks than the one that spoke last."""
    return known.agent_instance_id not in (None, report.agent_instance_id)


def news(
    known: Known, devices: tuple[Device, ...], residents: Iterable[Resident], report: Report
) -> News:
    """Compare a report with the node as it is stored. What it leaves out is no news."""
    other_devices = report.devices is not None and report.devices != devices
    before = _by_place(residents)
    after = before if report.residents is None else _by_place(report.residents)
    other_residents = _standing(before) != _standing(after)
    return News(
        devices=other_devices,
        residents=other_residents or _used_since(before, after),
        placement=(
            other_devices
            or other_residents
            or known.status in LIFTED
            or report.max_jobs not in (None, known.max_jobs)
            or (report.kinds_given and report.kinds != known.kinds)
        ),
    )


Places = Mapping[tuple[str, str | None], Resident]


def _by_place(residents: Iterable[Resident]) -> Places:
    return {(one.slug, one.device): one for one in residents}


def _standing(places: Places) -> dict[tuple[str, str | None], Resident]:
    return {place: attrs.evolve(one, last_used_s=None) for place, one in places.items()}


def _used_since(before: Places, after: Places) -> bool:
    """Tell whether some model was last used at another time. Called with equal places or not."""
    for place in before.keys() & after.keys():
        was, is_now = before[place].last_used_s, after[place].last_used_s
        if was is None or is_now is None:
            if was is not is_now:
                return True
        elif abs(was - is_now) > LAST_USED_SLACK_S:
            return True
    return False
