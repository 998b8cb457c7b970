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

MIB: Final = 1024 * 1024


@attrs.frozen(kw_only=True)
class Memory:
    """RAM in MB for this process's group: None is not known."""

    total_mb: int | None
    free_mb: int | None
    why: str


def memory(root: Path = Path("/")) -> Memory:
    """Return the RAM that work here may use. `root` is the file system's, or a test's."""
    host_total, host_free = _meminfo(root)
    if host_total is None:
        return Memory(total_mb=None, free_mb=None, why="no meminfo")
    total, free, why = host_total, host_free, "host"
    for level in _levels(root):
        limit, room = level
        if limit is not None and limit < total:
            total, why = limit, "cgroup limit"
        if limit is not None and limit < host_total and room is not None:
            free = room if free is None else min(free, room)
    return Memory(
        total_mb=total // MIB,
        free_mb=None if free is None else max(0, min(free, total)) // MIB,
        why=why,
    )


def processors(root: Path = Path("/")) -> float:
    """Return how many processors work here may use: the host's, or the smallest quota's share."""
    units = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
    for folder in _v2_folders(root):
        quota, _, period = (_text(folder / "cpu.max") or "max").partition(" ")
        if quota.isdigit() and period.isdigit() and int(period) > 0:
            units = min(units, int(quota) / int(period))
    for folder in _v1_folders(root, "cpu"):
        quota_us, period_us = (_number(folder / f"cpu.cfs_{n}_us") for n in ("quota", "period"))
        if quota_us is not None and quota_us > 0 and period_us:
            units = min(units, quota_us / period_us)
    return round(units, 2)


def _levels(root: Path) -> Iterator[tuple[int | None, int | None]]:
    """Yield (limit, room below it) in bytes of each group on the way up."""
    for folder in _v2_folders(root):
        limit, current = _number(folder / "memory.max"), _number(folder / "memory.current")
        stat = _fields(folder / "memory.stat")
        yield limit, _room(limit, current, stat, ("inactive_file", "slab_reclaimable"))
    for folder in _v1_folders(root, "memory"):
        limit = _number(folder / "memory.limit_in_bytes")
        current = _number(folder / "memory.usage_in_bytes")
        stat = _fields(folder / "memory.stat")
        yield limit, _room(limit, current, stat, ("total_inactive_file",))


def _room(
    limit: int | None, current: int | None, stat: dict[str, int], reclaimable: tuple[str, ...]
) -> int | None:
    if limit is None or current is None:
        return None
    return limit - current + sum(stat[name] for name in reclaimable if name in stat)


def _v2_folders(root: Path) -> Iterator[Path]:
    base = root / "sys/fs/cgroup"
    if not (base / "cgroup.controllers").exists():
        return
    path = next((p for n, p in _own_groups(root) if n == ""), "/")
    yield from _upwards(base, path)


def _v1_folders(root: Path, controller: str) -> Iterator[Path]:
    base = root / "sys/fs/cgroup" / controller
    if not base.is_dir():
        return
    path = next((p for n, p in _own_groups(root) if controller in n.split(",")), "/")
    yield from _upwards(base, path)


def _own_groups(root: Path) -> list[tuple[str, str]]:
    lines = (_text(root / "proc/self/cgroup") or "").splitlines()
    parts = [line.split(":", 2) for line in lines]
    return [(part[1], part[2]) for part in parts if len(part) == 3]  # noqa: PLR2004


def _upwards(base: Path, path: str) -> Iterator[Path]:
    """Yield the group's folder and those above it; in a container only the last may exist."""
    folder = base / path.strip("/")
    while True:
        if folder.is_dir():
            yield folder
        if folder == base or base not in folder.parents:
            return
        folder = folder.parent


def _meminfo(root: Path) -> tuple[int | None, int | None]:
    told = _fields(root / "proc/meminfo")
    names = ("MemTotal:", "MemAvailable:")
    total, free = (told[name] * 1024 if name in told else None for name in names)
    return total, free


def _fields(path: Path) -> dict[str, int]:
    found = {}
    for line in (_text(path) or "").splitlines():
        words = line.split()
        if len(words) >= 2 and words[1].isdigit():  # noqa: PLR2004
            found[words[0]] = int(words[1])
    return found


def _number(path: Path) -> int | None:
    text = _text(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None  # "max", or nothing that makes sense


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
