"""A server is private, says why it does not start, and never touches what it did not make."""

import os
import signal
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.embedded.conftest import FAST, Query, Start
from umbra_compute import embedded
from umbra_compute.config import ConfigurationError
from umbra_compute.embedded import account, cluster, sockets
from umbra_compute.embedded.programs import Programs


async def test_the_only_way_in_is_a_socket_that_nobody_else_reaches(
    data_dir: Path, start: Start, query: Query
) -> None:
    server = start()
    assert await query(server.dsn, "SHOW listen_addresses") == ""
    assert await query(server.dsn, "SHOW unix_socket_directories") == str(data_dir / "run")
    assert _mode(data_dir / "run") == 0o700
    assert _mode(data_dir / "postgres") == 0o700
    by_network = "SELECT string_agg(DISTINCT auth_method, ',') FROM pg_hba_file_rules"
    assert await query(server.dsn, f"{by_network} WHERE type <> 'local'") == "reject"


async def test_texts_are_ordered_the_same_on_every_machine(start: Start, query: Query) -> None:
    locale = "SELECT datlocprovider::text || datlocale FROM pg_database LIMIT 1"
    assert await query(start().dsn, locale) == "bC.UTF-8"


def test_the_server_is_not_root_and_knows_nothing_of_our_environment(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UMBRA_API_KEY", "secret")
    monkeypatch.setenv("PGOPTIONS", "-c nonsense")
    process = Path("/proc") / str(start().pid)
    assert process.stat().st_uid != 0
    assert process.stat().st_gid != 0
    assert b"secret" not in (process / "environ").read_bytes()
    assert b"nonsense" not in (process / "environ").read_bytes()


async def test_a_stopped_server_can_be_started_again(
    data_dir: Path, start: Start, query: Query
) -> None:
    server = start()
    await query(server.dsn, "CREATE TABLE kept AS SELECT 7 AS value")
    server.stop()
    assert not server.is_running
    assert not (data_dir / "postgres" / "postmaster.pid").exists()
    again = start()
    assert await query(again.dsn, "SELECT value FROM kept") == 7


async def test_a_server_that_was_killed_can_be_started_again(start: Start, query: Query) -> None:
    server = start()
    await query(server.dsn, "CREATE TABLE kept AS SELECT 7 AS value")
    os.kill(server.pid, signal.SIGKILL)
    server.stop()
    assert await query(start().dsn, "SELECT value FROM kept") == 7


async def test_what_is_committed_is_on_the_disk(start: Start, query: Query) -> None:
    server = start(settings=None)  # as a controller starts it
    for name in ("fsync", "synchronous_commit", "full_page_writes"):
        assert await query(server.dsn, f"SHOW {name}") == "on"


async def test_an_operators_settings_are_kept(data_dir: Path, start: Start, query: Query) -> None:
    server = start()
    assert await query(server.dsn, "SHOW shared_buffers") == "128MB"
    assert await query(server.dsn, "SHOW autovacuum") == "on"
    server.stop()
    with (data_dir / "postgres" / "postgresql.conf").open("a") as out:
        out.write("shared_buffers = 256MB\nlisten_addresses = '*'\n")
    again = start()
    assert await query(again.dsn, "SHOW shared_buffers") == "256MB"
    assert await query(again.dsn, "SHOW listen_addresses") == ""


async def test_a_path_too_long_for_a_socket_gets_a_short_private_folder(
    data_dir: Path, wheel: Programs, start: Start, query: Query
) -> None:
    far = data_dir / ("far-" * 20)
    far.mkdir(mode=0o711)
    (far / f"programs-{wheel.version}").symlink_to(wheel.folder.parents[1])
    assert len(os.fsencode(far)) > sockets.LONGEST - 20
    server = start(far)
    folder = Path(await query(server.dsn, "SHOW unix_socket_directories"))
    assert folder.parent == Path(tempfile.gettempdir())
    assert _mode(folder) == 0o700
    server.stop()
    assert _mode(folder) is None


@pytest.mark.parametrize("what", ["a link", "another user's"])
def test_a_short_folder_that_is_not_ours_is_not_used(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(data_dir))
    us = account.Account(os.geteuid(), os.getegid(), drops=False)
    far = data_dir / ("far-" * 40)
    place = sockets.folder(us, far)
    place.rmdir()
    target = data_dir / "target"
    target.mkdir(mode=0o755)
    if what == "a link":
        place.symlink_to(target)
    else:
        place.mkdir(mode=0o755)
        monkeypatch.setattr(os, "geteuid", lambda: us.uid + 1)
        us = account.Account(us.uid + 1, us.gid, drops=False)
    with pytest.raises(ConfigurationError, match="belongs to somebody else"):
        sockets.folder(us, far)
    assert _mode(target) == 0o755


def test_a_path_that_leaves_no_room_for_a_socket_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", f"/{'far-' * 30}")
    with pytest.raises(ConfigurationError, match="choose a shorter data_dir"):
        sockets.folder(account.choose(tmp_path), tmp_path / ("far-" * 30))


def test_a_cluster_of_another_major_version_is_left_as_it_is(data_dir: Path, start: Start) -> None:
    old = data_dir / "postgres"
    old.mkdir(mode=0o700)
    (old / "PG_VERSION").write_text("17\n")
    with pytest.raises(ConfigurationError, match=r"PostgreSQL 17 and this is 18: .*pg_dumpall"):
        start()
    assert [path.name for path in old.iterdir()] == ["PG_VERSION"]


def test_a_folder_that_is_no_cluster_is_left_as_it_is(data_dir: Path, start: Start) -> None:
    (data_dir / "postgres").mkdir()
    (data_dir / "postgres" / "letters.txt").write_text("Dear")
    with pytest.raises(ConfigurationError, match="holds no database: move it away"):
        start()
    assert (data_dir / "postgres" / "letters.txt").read_text() == "Dear"


async def test_a_cluster_whose_making_was_interrupted_is_made_again(
    data_dir: Path, start: Start, query: Query
) -> None:
    (data_dir / ".initdb-gone").mkdir()
    (data_dir / ".initdb-gone" / "PG_VERSION").write_text("18\n")
    assert await query(start().dsn, "SELECT 1") == 1
    assert not (data_dir / ".initdb-gone").exists()


async def test_a_process_that_has_a_dead_servers_number_is_not_taken_for_it(
    data_dir: Path, start: Start, query: Query
) -> None:
    server = start()
    server.stop()
    prepared = data_dir / "postgres"
    with _stranger(account.choose(prepared)) as stranger:
        (prepared / "postmaster.pid").write_text(
            f"{stranger}\n{prepared}\n1\n5432\n{data_dir / 'run'}\n\n  1 1\nready\n"
        )
        assert await query(start().dsn, "SELECT 1") == 1


@pytest.mark.parametrize("name", ["shared_buffers", "no_such_setting"])
def test_a_server_that_cannot_start_says_why(start: Start, name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{name}.*start\.log"):
        start(settings={**FAST, name: "nonsense"})
    assert start().is_running


def test_a_start_outside_the_main_thread_is_a_bug(data_dir: Path) -> None:
    # The kernel would end the server with that thread.
    failed: list[BaseException] = []

    def starting() -> None:
        try:
            embedded.start(data_dir)
        except AssertionError as exc:
            failed.append(exc)

    thread = threading.Thread(target=starting)
    thread.start()
    thread.join()
    assert "main thread" in str(failed[0])


def test_a_data_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="file/pg cannot be made: Not a directory"):
        embedded.start(tmp_path / "file" / "pg")
    with pytest.raises(ConfigurationError, match="file is no folder"):
        embedded.start(tmp_path / "file")


def test_status_of_a_server_that_is_still_writing_it_is_none(tmp_path: Path) -> None:
    assert cluster.status(tmp_path) is None
    (tmp_path / "postmaster.pid").write_text("7\n/there\n1\n5432\n")
    assert cluster.status(tmp_path) is None


def _mode(path: Path) -> int | None:
    return stat.S_IMODE(path.stat().st_mode) if path.exists() else None


@contextmanager
def _stranger(owner: account.Account) -> Iterator[int]:
    with subprocess.Popen(["sleep", "60"], **owner.popen_arguments()) as process:
        try:
            yield process.pid
        finally:
            process.kill()
