"""Memory and processors inside cgroups: trees of files as kernels show them (P17)."""

from pathlib import Path

import pytest
from umbra_agent.devices.busy import Busy
from umbra_agent.devices.memory import memory, processors

GIB = 1024**3
V2 = "sys/fs/cgroup"
V1 = "sys/fs/cgroup/memory"
NEAR_2_63 = str(2**63 - 4096)


def tree(root: Path, files: dict[str, str], *, total: int = 128, free: int = 100) -> Path:
    """Make a file system with a host of `total` and `free` GiB."""
    host = f"MemTotal: {total * 1024**2} kB\nMemFree: 1 kB\nMemAvailable: {free * 1024**2} kB\n"
    for name, text in {"proc/meminfo": host, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def v2(path: str = "/", **files: str) -> dict[str, str]:
    """Return the files of one version 2 group, the process in it."""
    told = {f"{V2}{path.rstrip('/')}/{k.replace('_', '.')}": text for k, text in files.items()}
    return {f"{V2}/cgroup.controllers": "memory cpu", "proc/self/cgroup": f"0::{path}\n", **told}


@pytest.mark.parametrize(
    ("files", "free", "expected"),
    [
        pytest.param(
            v2(
                memory_max=str(64 * GIB),
                memory_current=str(60 * GIB),
                memory_stat=f"anon 1\ninactive_file {50 * GIB}\nslab_reclaimable 0\n",
            ),
            100, (64, 54), id="page cache can be reclaimed",
        ),
        pytest.param(v2(memory_max="max", memory_current="1"), 100, (128, 100), id="no limit"),
        pytest.param(
            v2("/a/b", memory_max="max")
            | {f"{V2}/a/memory.max": str(8 * GIB), f"{V2}/a/memory.current": str(2 * GIB)},
            100, (8, 6), id="the limit of the group above",
        ),
        pytest.param(
            v2("/a/b", memory_max=str(16 * GIB), memory_current=str(15 * GIB))
            | {f"{V2}/a/memory.max": str(8 * GIB), f"{V2}/a/memory.current": "0"},
            100, (8, 1), id="the least room of all levels",
        ),
        pytest.param(
            v2(memory_max=str(64 * GIB), memory_current="0"), 5, (64, 5), id="the host has less"
        ),
        pytest.param(
            v2(memory_max=str(4 * GIB), memory_current=str(6 * GIB)), 100, (4, 0), id="over limit"
        ),
        pytest.param(
            v2("/gone", memory_max="max") | {f"{V2}/memory.max": str(8 * GIB)},
            100, (8, 8), id="a container that sees only its own root",
        ),
        pytest.param(
            {f"{V1}/memory.limit_in_bytes": NEAR_2_63, "proc/self/cgroup": "4:memory:/\n"},
            100, (128, 100), id="version 1 without a limit",
        ),
        pytest.param(
            {
                f"{V1}/job/memory.limit_in_bytes": str(8 * GIB),
                f"{V1}/job/memory.usage_in_bytes": str(7 * GIB),
                f"{V1}/job/memory.stat": f"inactive_file 1\ntotal_inactive_file {2 * GIB}\n",
                f"{V1}/memory.limit_in_bytes": NEAR_2_63,
                "proc/self/cgroup": "5:cpu,cpuacct:/job\n4:memory:/job\n",
            },
            100, (8, 3), id="version 1 with a limit",
        ),
        pytest.param({}, 100, (128, 100), id="no groups"),
    ],
)  # fmt: skip
def test_the_least_of_group_ancestors_and_host_counts_p17(
    tmp_path: Path, files: dict[str, str], free: int, expected: tuple[int, int]
) -> None:
    found = memory(tree(tmp_path, files, free=free))
    assert (found.total_mb, found.free_mb) == tuple(gib * 1024 for gib in expected)
    assert found.doubts == ()


def test_what_makes_no_sense_is_left_out_and_named_p17(tmp_path: Path) -> None:
    files = v2(memory_max="garbage\xff", memory_current="1")
    found = memory(tree(tmp_path, files))
    assert (found.total_mb, found.free_mb) == (128 * 1024, 100 * 1024)
    assert found.doubts == ("/sys/fs/cgroup/memory.max makes no sense",)


def test_what_cannot_be_read_is_left_out_and_named_p17(tmp_path: Path) -> None:
    root = tree(tmp_path, v2())
    (root / V2 / "memory.max").mkdir()
    found = memory(root)
    assert found.total_mb == 128 * 1024
    assert found.doubts == ("/sys/fs/cgroup/memory.max cannot be read (Is a directory)",)


def test_what_nobody_can_measure_is_not_known(tmp_path: Path) -> None:
    found = memory(tmp_path)
    assert (found.total_mb, found.free_mb) == (None, None)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 1024 kB\n")
    found = memory(tmp_path)
    assert (found.total_mb, found.free_mb) == (1, None)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (v2(cpu_max="150000 100000"), 1.5),
        (v2(cpu_max="max 100000"), 8.0),
        (v2(cpu_max="2000000 100000"), 8.0),
        (v2(cpu_max="nonsense"), 8.0),
        (v2("/a/b", cpu_max="max 100000") | {f"{V2}/a/cpu.max": "33333 100000"}, 0.33),
        (
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "250000",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            2.5,
        ),
        (
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            8.0,
        ),
    ],
)
def test_a_quota_is_a_share_of_processors_p17(
    tmp_path: Path, files: dict[str, str], expected: float
) -> None:
    assert processors(tree(tmp_path, files), present=8) == expected


def test_busy_is_what_was_not_idle_between_two_looks(tmp_path: Path) -> None:
    path = tmp_path / "stat"
    busy = Busy(path)
    looks = []
    for text in ("cpu 10 0 10 80 0 0 0 0 5 0\n", "cpu 30 0 15 150 5 0 0 0 9 0\n", "nonsense\n"):
        path.write_text(text)
        looks.append(busy.since_last_pct())
    assert looks == [None, 25.0, None]
