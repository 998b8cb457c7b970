"""Memory and processors, inside the limits that cgroups set. Pure but for reading files.

Sources: the kernel's cgroup-v2 documentation; FACTS of other systems: page cache counts as used
in memory.current, so what can be reclaimed is added back; version 1 shows "no limit" as a number
near 2^63; a limit is the smallest of the group's and all its ancestors'.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from umbra_agent.devices.cgroups import Tree

MIB: Final = 1024 * 1024


@attrs.frozen(kw_only=True)
class Memory:
    """RAM in MB for this process's group: None is not known. `doubts`: what was left out."""

    total_mb: int | None
    free_mb: int | None
    why: str
    doubts: tuple[str, ...] = ()


def memory(root: Path = Path("/")) -> Memory:
    """Return the RAM that work here may use. `root` is the file system's, or a test's."""
    tree = Tree(root)
    host_total, host_free = _meminfo(tree)
    if host_total is None:
        return Memory(total_mb=None, free_mb=None, why="no meminfo", doubts=tuple(tree.doubts))
    total, free, why = host_total, host_free, "host"
    for limit, room in _levels(tree):
        if limit is None or limit >= host_total:
            continue
        if limit < total:
            total, why = limit, "cgroup limit"
        if room is not None:
            free = room if free is None else min(free, room)
    return Memory(
        total_mb=total // MIB,
        free_mb=None if free is None else max(0, min(free, total)) // MIB,
        why=why,
        doubts=tuple(tree.doubts),
    )


def processors(root: Path = Path("/"), present: int | None = None) -> float:
    """Return how many processors work here may use, to two decimals.

    `present` are those that this process may run on; the smallest quota's share is less.
    """
    tree = Tree(root)
    units = float(_affine() if present is None else present)
    for folder in tree.v2():
        quota, _, period = (tree.text(folder / "cpu.max") or "max").partition(" ")
        if quota.isdigit() and period.isdigit() and int(period) > 0:
            units = min(units, int(quota) / int(period))
    for folder in tree.v1("cpu"):
        quota_us, period_us = (tree.number(folder / f"cpu.cfs_{n}_us") for n in ("quota", "period"))
        if quota_us is not None and period_us is not None and period_us > 0:
            units = min(units, quota_us / period_us)
    return round(units, 2)


def _affine() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    count = os.cpu_count()
    return 1 if count is None else count


def _levels(tree: Tree) -> Iterator[tuple[int | None, int | None]]:
    """Yield (limit, room below it) in bytes of each group on the way up."""
    for folder in tree.v2():
        limit, current = tree.number(folder / "memory.max"), tree.number(folder / "memory.current")
        stat = tree.fields(folder / "memory.stat")
        yield limit, _room(limit, current, stat, ("inactive_file", "slab_reclaimable"))
    for folder in tree.v1("memory"):
        limit = tree.number(folder / "memory.limit_in_bytes")
        current = tree.number(folder / "memory.usage_in_bytes")
        stat = tree.fields(folder / "memory.stat")
        yield limit, _room(limit, current, stat, ("total_inactive_file",))


def _room(
    limit: int | None, current: int | None, stat: dict[str, int], reclaimable: tuple[str, ...]
) -> int | None:
    if limit is None or current is None:
        return None
    return limit - current + sum(stat[name] for name in reclaimable if name in stat)


def _meminfo(tree: Tree) -> tuple[int | None, int | None]:
    told = tree.fields(tree.root / "proc/meminfo")
    names = ("MemTotal:", "MemAvailable:")
    total, free = (told[name] * 1024 if name in told else None for name in names)
    return total, free
