"""Requirement classes: jobs of one organization that are alike for placement. Source: SPEC §2."""

import hashlib
import json
from typing import Any
from uuid import UUID

import attrs

from umbra_compute.model.jobs import ClassKey, Prefer, Requires
from umbra_compute.model.nodes import Model
from umbra_compute.model.placement import ClassRow


def class_key(organization_id: UUID, kind: str, requires: Requires, prefer: Prefer) -> ClassKey:
    """Return what jobs must share to be one class. max_runtime_s is left out: it places nothing."""
    told_requires, told_prefer = _canonical(requires), _canonical(prefer)
    whole = json.dumps([kind, told_requires, told_prefer], ensure_ascii=False)
    return ClassKey(
        organization_id=organization_id,
        kind=kind,
        requires=told_requires,
        prefer=told_prefer,
        hash=hashlib.sha256(whole.encode()).digest(),
    )


def class_row(class_id: int, kind: str, requires: str, prefer: str, models: str | None) -> ClassRow:
    """Return a stored class as a value; the last three are the JSON that is stored."""
    asked = _tuples(json.loads(requires))
    registered = [] if models is None else json.loads(models)
    return ClassRow(
        id=class_id,
        kind=kind,
        requires=Requires(**asked),
        prefer=Prefer(**json.loads(prefer)),
        models=tuple(Model(**_tuples(model)) for model in registered),
    )


def _tuples(read: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in read.items()}


def _canonical(value: Requires | Prefer) -> str:
    """Only what is set, keys and lists sorted: equal needs give equal text. Zero is set."""
    told = attrs.asdict(value, filter=lambda _, v: v is not None and v != ())
    lists = {k: sorted(set(v)) if isinstance(v, tuple) else v for k, v in told.items()}
    return json.dumps(lists, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
