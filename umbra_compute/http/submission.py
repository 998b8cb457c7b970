"""From a submission's body to the job that it asks for."""

import hashlib
import json
from typing import Any

import attrs
import msgspec

from umbra_compute.errors import Fault, InvalidBody
from umbra_compute.http.wire_jobs import JobBody
from umbra_compute.model.caller import ApiIdentity
from umbra_compute.model.jobs import NewJob, Prefer, Requires
from umbra_compute.policy.classes import class_key


def new_job(caller: ApiIdentity, body: JobBody, *, at: str = "$") -> NewJob:
    """Return the job that `body`, found at the path `at`, asks for.

    Raises InvalidBody for fields that contradict each other.
    """
    faults = list(_faults(body, at))
    if faults:
        raise InvalidBody(*faults)
    requires = Requires(
        vram_min_mb=_either(body.requires.vram_min_mb, body.requires.min_vram_mb),
        ram_min_mb=_either(body.requires.ram_min_mb, body.requires.min_ram_mb),
        models=_sorted(body.requires.models),
        trust_domains=_sorted(body.requires.trust_domains),
        accelerators=_sorted(body.requires.accelerators),
    )
    prefer = Prefer(node=body.prefer.node, locality=body.prefer.locality)
    key = body.idempotency_key
    return NewJob(
        organization_id=caller.organization_id,
        class_key=class_key(caller.organization_id, body.kind, requires, prefer),
        payload=body.payload,
        priority=body.priority,
        project_id=body.project_id,
        lang=body.lang,
        requested_by=caller.key_name if body.requested_by is None else body.requested_by,
        not_before=body.not_before,
        delay_s=body.delay_s,
        start_by_s=body.start_by_s,
        max_attempts=body.max_attempts,
        max_runtime_s=body.requires.max_runtime_s,
        idempotency_key=key,
        idempotency_hash=None if key is None else _body_hash(body, requires),
    )


def new_jobs(caller: ApiIdentity, bodies: list[JobBody]) -> list[NewJob]:
    """Return the jobs of a batch. Raises InvalidBody with the faults of all of them."""
    jobs: list[NewJob] = []
    faults: list[Fault] = []
    for position, body in enumerate(bodies):
        try:
            jobs.append(new_job(caller, body, at=f"$.jobs[{position}]"))
        except InvalidBody as exc:
            faults.extend(exc.faults)
    if faults:
        raise InvalidBody(*faults)
    return jobs


def _faults(body: JobBody, at: str) -> list[Fault]:
    faults: list[Fault] = []
    if body.not_before is not None and body.delay_s is not None:
        faults.append((f"{at}.delay_s", "give not_before or delay_s, not both"))
    for name, other in (("vram_min_mb", "min_vram_mb"), ("ram_min_mb", "min_ram_mb")):
        given = (getattr(body.requires, name), getattr(body.requires, other))
        if None not in given and given[0] != given[1]:
            faults.append((f"{at}.requires.{other}", f"differs from {name}: give one of them"))
    return faults


def _body_hash(body: JobBody, requires: Requires) -> bytes:
    """Tell two submissions under one key apart: what was asked for, however it was spelled."""
    told: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(body, payload="null"))
    told["requires"] = attrs.asdict(requires) | {"max_runtime_s": body.requires.max_runtime_s}
    told["payload"] = json.loads(body.payload)
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).digest()


def _either(value: int | None, older: int | None) -> int | None:
    return older if value is None else value


def _sorted(names: list[str] | None) -> tuple[str, ...]:
    return () if names is None else tuple(sorted(set(names)))
