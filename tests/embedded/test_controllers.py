"""One server per data folder, whatever controllers and commands do: they come at once, and die."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from tests.embedded.conftest import Controllers, Query, Start
from tests.world import until
from umbra_compute import embedded
from umbra_compute.config import ConfigurationError
from umbra_compute.embedded import cluster, lock, server
from umbra_compute.embedded.lock import FolderLock, holder

MAKE = "CREATE TABLE kept AS SELECT 7 AS value"
READ = "SELECT value FROM kept"


@pytest.mark.parametrize("ordinary", [False, True])
async def test_what_was_committed_outlives_a_controller_that_was_killed(
    ordinary_dir: Path, controllers: Controllers, query: Query, ordinary: bool
) -> None:
    first = await controllers(ordinary_dir, ordinary=ordinary)
    first.go()
    dsn = await first.heard()
    await query(dsn, MAKE)
    running = _server(ordinary_dir)
    assert (await asyncio.to_thread(running.stat)).st_uid != 0
    await first.kill()

    second = await controllers(ordinary_dir, ordinary=ordinary)
    second.go()
    assert await query(await second.heard(), READ) == 7
    assert await second.stop() == 0


async def test_the_server_of_a_killed_controller_is_waited_for(
    data_dir: Path, controllers: Controllers, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = await controllers(data_dir)
    controller.go()
    await controller.heard()
    pid = int(_server(data_dir).name)
    os.kill(pid, signal.SIGSTOP)
    try:
        await controller.kill()
        monkeypatch.setattr(cluster, "PREDECESSOR_S", 0.0)
        with pytest.raises(ConfigurationError, match=rf"\(process {pid}\) still runs"):
            start()
    finally:
        os.kill(pid, signal.SIGCONT)
    monkeypatch.undo()
    assert start().is_running


async def test_a_server_ends_with_its_controller(
    data_dir: Path, controllers: Controllers, query: Query
) -> None:
    controller = await controllers(data_dir)
    controller.go()
    await query(await controller.heard(), MAKE)
    running = _server(data_dir)
    await controller.kill()
    await until(lambda: _ended(running))
    assert holder(data_dir) is None


async def test_a_second_controller_is_told_who_has_the_folder(
    data_dir: Path, controllers: Controllers, query: Query
) -> None:
    first = await controllers(data_dir)
    first.go()
    dsn = await first.heard()
    with pytest.raises(
        embedded.FolderInUse, match=rf"{data_dir} is in use by process {first.process.pid} since 20"
    ):
        embedded.start(data_dir)
    assert await query(dsn, "SELECT 1") == 1


async def test_of_two_controllers_at_once_one_serves_and_the_other_knows_which(
    data_dir: Path, controllers: Controllers, query: Query
) -> None:
    both = [await controllers(data_dir) for _ in range(2)]
    for one in both:
        one.go()
    said = await asyncio.gather(*(one.heard() for one in both))
    refused = [text for text in said if text.startswith("refused:")]
    assert len(refused) == 1
    serving = both[1 - said.index(refused[0])]
    assert f"process {serving.process.pid} " in refused[0]
    assert await query(said[both.index(serving)], "SELECT 1") == 1


async def test_a_command_uses_the_server_of_the_controller_and_leaves_it_running(
    data_dir: Path, controllers: Controllers, query: Query
) -> None:
    controller = await controllers(data_dir)
    controller.go()
    dsn = await controller.heard()
    with embedded.database(data_dir) as found:
        assert found == dsn
    assert await query(dsn, "SELECT 1") == 1


async def test_a_command_waits_for_a_controller_that_is_starting(
    data_dir: Path, controllers: Controllers
) -> None:
    command, controller = await controllers(data_dir, "passes"), await controllers(data_dir)
    controller.go()
    await until(lambda: _held(data_dir))
    command.go()
    assert await command.heard() == await controller.heard()


def test_a_command_that_a_controller_overtook_uses_its_server(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter([None, "postgresql://theirs"])  # not yet when it looked; then it was
    monkeypatch.setattr(server, "find_running", lambda _: next(found))
    theirs = FolderLock(data_dir, stays=True)
    with embedded.database(data_dir) as dsn:
        assert dsn == "postgresql://theirs"
    theirs.release()


async def test_commands_at_once_take_turns(
    data_dir: Path, controllers: Controllers, query: Query
) -> None:
    commands = [await controllers(data_dir, "passes") for _ in range(3)]
    for command in commands:
        command.go()
    for number, hearing in enumerate(asyncio.as_completed([c.heard() for c in commands])):
        dsn = await hearing
        assert dsn.startswith("postgresql://")
        await query(dsn, f"CREATE TABLE number_{number} ()")
        owner = holder(data_dir)
        assert owner is not None
        done = [c for c in commands if f"process {c.process.pid} " in owner.name]
        assert await done[0].stop() == 0


async def test_a_controller_waits_for_a_command_to_be_done(
    data_dir: Path, controllers: Controllers, query: Query
) -> None:
    command, controller = await controllers(data_dir, "passes"), await controllers(data_dir)
    command.go()
    await query(await command.heard(), MAKE)
    controller.go()
    hearing = asyncio.create_task(controller.heard())
    assert await command.stop() == 0
    assert await query(await hearing, READ) == 7


def test_a_holder_that_has_not_written_its_name_yet_is_not_held_against_who_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passing = FolderLock(tmp_path, stays=False)
    script = iter([lambda: os.truncate(tmp_path / "lock", 0), lambda: None, passing.release])
    clock = [0.0]

    def sleep(_: float) -> None:
        clock[0] += lock.LOOKING_S * 0.9
        next(script)()

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", sleep)
    FolderLock(tmp_path, stays=True).release()
    assert next(script, None) is None


def test_looking_who_has_a_folder_keeps_nobody_out(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w"):
        assert holder(tmp_path) is None
    held = FolderLock(tmp_path, stays=True)
    found = holder(tmp_path)
    assert found is not None
    assert found.stays
    held.release()
    assert holder(tmp_path) is None


def _server(data_dir: Path) -> Path:
    """Return the server's folder below /proc."""
    first_line = (data_dir / "postgres" / "postmaster.pid").read_text().split("\n")[0]
    return Path("/proc") / first_line


async def _ended(running: Path) -> bool:
    # One that nobody has waited for yet has no program any more.
    return not await asyncio.to_thread((running / "exe").exists)


async def _held(data_dir: Path) -> bool:
    return holder(data_dir) is not None
