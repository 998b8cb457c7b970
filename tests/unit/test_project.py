"""What holds for the project as a whole."""

import configparser
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from umbra_agent import key
from umbra_agent.config import Config

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text()
DISTRIBUTIONS = ("pyproject.toml", "agent/pyproject.toml")
KINDS = {"added", "changed", "fixed", "removed"}


def test_the_lock_names_no_place_to_download_from() -> None:
    assert "://" not in LOCK
    assert not re.search(r"^\s*(-|.* @ )", LOCK.replace("    --hash=", "    "), re.MULTILINE)


def test_the_lock_has_hashes_for_all_that_it_pins() -> None:
    pins = re.findall(r"^([a-z0-9][a-z0-9._-]*)==\S+(?: ;.*)? \\\n    --hash=sha256:", LOCK, re.M)
    assert pins
    assert len(pins) == len([line for line in LOCK.splitlines() if re.match(r"[^ #]", line)])


@pytest.mark.parametrize("path", DISTRIBUTIONS)
def test_what_a_distribution_needs_is_in_the_lock(path: str) -> None:
    names = {re.split(r"[^A-Za-z0-9._-]", one)[0] for one in needed(path)}
    assert {name for name in names if f"\n{name}==" not in f"\n{LOCK}"} == set()


def test_what_is_locked_is_what_the_distributions_need() -> None:
    lines = (ROOT / "requirements.in").read_text().splitlines()
    resolved = {line for line in lines if line and not line.startswith("#")}
    told = {one.split(";")[0] for path in DISTRIBUTIONS for one in needed(path)}
    assert resolved - {"wheel"} == told  # wheel builds ours, in the environment that is there


def needed(path: str) -> list[str]:
    told = tomllib.loads((ROOT / path).read_text())
    optional = told["project"].get("optional-dependencies", {}).values()
    groups = told.get("dependency-groups", {}).values()
    return [one for some in (told["project"]["dependencies"], *optional, *groups) for one in some]


def test_both_distributions_have_the_same_version() -> None:
    versions = {
        tomllib.loads((ROOT / path).read_text())["project"]["version"] for path in DISTRIBUTIONS
    }
    assert len(versions) == 1


def test_make_shows_what_a_newcomer_needs() -> None:
    told = subprocess.run(
        ["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "make demo" in told
    assert "make test" in told


def test_an_old_python_is_told_in_one_sentence(tmp_path: Path) -> None:
    subprocess.run(["cp", ROOT / "Makefile", tmp_path], check=True)
    for name in ("requirements.lock", *DISTRIBUTIONS, "setup.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    made = subprocess.run(
        ["make", "--silent", "PYTHON=false", "demo"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode != 0
    assert made.stderr.splitlines()[0].startswith("Umbra Compute needs Python 3.11 or newer")


def test_decisions_have_numbers_of_their_own() -> None:
    names = [path.name for path in (ROOT / "docs" / "decisions").glob("*.md")]
    assert all(re.match(r"[0-9]{4}-[a-z0-9-]+\.md", name) for name in names)
    numbers = {name[:4] for name in names}
    assert len(numbers) == len(names)
    assert {"0001", "0002", "0003", "0004"} <= numbers


def test_changelog_fragments_are_named_for_their_kind() -> None:
    for path in (ROOT / "docs" / "changes").glob("*.md"):
        if path.name != "README.md":
            named = re.fullmatch(r"[a-z0-9-]+\.([a-z]+)\.md", path.name)
            assert named is not None, path.name
            assert named[1] in KINDS, path.name


def test_no_file_is_too_long_to_read() -> None:
    long = [
        path
        for folder in ("umbra_compute", "agent/umbra_agent", "tests", "bench")
        for path in (ROOT / folder).rglob("*.py")
        if len(path.read_text().splitlines()) > 400
    ]
    assert long == []


def unit(name: str) -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(ROOT / "systemd" / name)
    return parser["Service"]


def test_the_agents_unit_passes_the_credential_that_the_agent_reads() -> None:
    assert unit("umbra-agent.service")["LoadCredential"].split(":")[0] == key.CREDENTIAL


def test_the_agents_unit_waits_for_a_drain() -> None:
    defaults = Config()
    wait_s = float(unit("umbra-agent.service")["TimeoutStopSec"])
    assert wait_s > defaults.drain_s + defaults.kill_grace_s + 10  # and to say what became of it


@pytest.mark.parametrize("name", ["umbra-compute", "umbra-agent"])
def test_a_unit_stops_its_program_first_and_what_it_started_last(name: str) -> None:
    told = unit(f"{name}.service")
    assert told["KillMode"] == "mixed"
    assert told["OOMPolicy"] == "continue"  # one job's or backend's end is not the program's
    assert Path(told["ExecStart"].split()[0]).name == name
