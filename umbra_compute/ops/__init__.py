"""What the system does: one public function is one transaction.

`pool` first: opens and commits it, and no other operation calls the function.
`conn` first: a part of the caller's transaction; opens nothing, logs nothing.

Lock order, always: node, class, parents from the topmost down, then jobs by id. Settling climbs
from child to parent and cancelling descends, so without the rule they would deadlock.
`parent_job_id` never changes: read the ancestors first, then lock them root first.
"""
