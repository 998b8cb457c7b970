"""What a claim costs beside a backlog: `python -m bench flat`. Ratios to a queue of 4,000."""

import statistics
import time
from uuid import UUID

from bench import rig
from umbra_compute import db
from umbra_compute.model.caller import NodeIdentity
from umbra_compute.model.leases import ClaimAsk
from umbra_compute.ops import claiming, jobs
from umbra_compute.ops.catalogue import Catalogue
from umbra_compute.wake import Wake

READY = 4000
ROUNDS = 150
MILLION = 1_000_000

# (name, kind, priority, state, rows): what lies beside 4,000 waiting jobs of kind "work"
BACKLOGS = (
    ("10,000 eligible", "work", 100, "ready", 10_000),
    ("1,000,000 eligible", "work", 100, "ready", MILLION),
    ("1,000,000 of another kind, better priority", "other", 1, "ready", MILLION),
    ("1,000,000 for tomorrow, better priority", "work", 1, "scheduled", MILLION),
    ("1,000,000 complete", "work", 100, "complete", MILLION),
)

_FILL = """
INSERT INTO jobs (id, organization_id, class_id, kind, state, priority, not_before, claimable_at,
                  finished_at, payload)
SELECT gen_random_uuid(), $1, $2, $3, $4::text, $5,
       CASE WHEN $4 = 'scheduled' THEN now() + interval '1 day' ELSE now() END, now(),
       CASE WHEN $4 = 'complete' THEN now() END, '{"n": 1}'
  FROM generate_series(1, $6::integer)
"""


async def measure(server: str) -> list[tuple[str, float, float]]:
    """Return (backlog, ms a claim, ratio to 4,000 waiting jobs alone measured just before)."""
    found = []
    for number, (name, kind, priority, state, rows) in enumerate(BACKLOGS):
        dsn = await rig.database(server, f"flat_{number}")
        async with rig.pool_of(dsn, 1) as pool:
            organization = await rig.organization(pool)
            catalogue, wake = Catalogue(), Wake()
            new = [rig.new_job(organization)] * 1000
            for _ in range(READY // 1000):
                await jobs.submit_all(pool, catalogue, wake, new)
            node = await rig.node(pool, organization, "n")
            await pool.execute("VACUUM ANALYZE jobs")
            await _claim_ms(pool, catalogue, node)
            base = await _claim_ms(pool, catalogue, node)
            await _fill(pool, catalogue, organization, kind, priority, state, rows)
            await pool.execute("UPDATE compute_nodes SET kinds = ARRAY['work']")
            await _claim_ms(pool, catalogue, node)
            with_backlog = await _claim_ms(pool, catalogue, node)
        found.append((name, with_backlog, with_backlog / base))
    return found


async def _fill(
    pool: db.Pool,
    catalogue: Catalogue,
    organization: UUID,
    kind: str,
    priority: int,
    state: str,
    rows: int,
) -> None:
    async with pool.acquire() as conn:
        [class_id] = await catalogue.ids_of(conn, [rig.new_job(organization, kind).class_key])
        await conn.execute(_FILL, organization, class_id, kind, state, priority, rows, timeout=300)
        await conn.execute("VACUUM ANALYZE jobs", timeout=300)


async def _claim_ms(pool: db.Pool, catalogue: Catalogue, node: NodeIdentity) -> float:
    """Return the median of single claims in ms; what was taken is forgotten, to hold slots free."""
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        answer = await claiming.claim(pool, catalogue, node, ClaimAsk(), stale_s=3600.0)
        taken.append(time.perf_counter() - began)
        [claimed] = answer.claimed
        await pool.execute("DELETE FROM jobs WHERE id = $1", claimed.job.id)
    return statistics.median(taken) * 1000
