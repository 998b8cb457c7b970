"""The answer to a call that is repeated after a lost reply: what the event of the first says."""

import json
from datetime import datetime
from uuid import UUID

from umbra_compute.model.jobs import Event, JobStatus
from umbra_compute.model.leases import Ended

COMPLETE = "complete"


def answer(call: str, job_id: UUID, event: str, attempt: int, detail: str | None) -> Ended | None:
    """Return what the holder was told when `call` ended its lease, None if another thing did.

    `call` is COMPLETE, or one of policy.fate's BY_FAIL and BY_RELEASE; `detail` the event's JSON.
    """
    if event == Event.COMPLETED:
        ended = Ended(job_id=job_id, status=JobStatus.COMPLETE, attempt=attempt)
        return ended if call == COMPLETE else None
    told = {} if detail is None else json.loads(detail)
    if "by" not in told or told["by"] != call:
        return None
    return Ended(
        job_id=job_id,
        status=JobStatus(told["status"]),
        attempt=attempt,
        not_before=datetime.fromisoformat(told["not_before"]),
    )
