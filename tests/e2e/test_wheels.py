"""What is shipped: both wheels, in an empty environment, without the checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from umbra_compute import migrate

ROOT = Path(__file__).parents[2]
OURS = ("umbra_compute", "umbra_agent")


def run(*argv: str | Path, cwd: Path) -> str:
    """Run it outside the checkout, with nothing of ours in the environment."""
    passed = {name: value for name, value in os.environ.items() if not name.startswith("UMBRA_")}
    passed.pop("PYTHONPATH", None)
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False, env=passed)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Build both from a copy: a build leaves files in its source, and takes up what others left."""
    folder = tmp_path_factory.mktemp("wheels")
    leftovers = shutil.ignore_patterns("__pycache__", "build", "dist", "*.egg-info")
    source = folder / "source"
    for name in ("umbra_compute", "agent", "sql"):
        shutil.copytree(ROOT / name, source / name, ignore=leftovers)
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for tree in (source, source / "agent"):
        build = (sys.executable, "-m", "build", "--wheel", "--no-isolation")
        run(*build, "--outdir", folder, tree, cwd=folder)
    return sorted(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def programs(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the commands' folder of an environment that holds our wheels.

    The dependencies are those of this run, linked one by one; of ours there is nothing but what
    the wheels brought.
    """
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    programs = folder / "bin"
    site = Path(run(programs / "python", "-c", PURELIB, cwd=folder).strip())
    pip = (sys.executable, "-m", "pip", "--python", programs / "python")
    run(*pip, "install", "--no-deps", "--no-index", "--quiet", *wheels, cwd=folder)
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.replace("__editable__", "").lstrip("_.").startswith(OURS):
            (site / entry.name).symlink_to(entry)
    return programs


PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_controllers_wheel_holds_all_of_the_package(wheels: list[Path]) -> None:
    held = names_in(next(wheel for wheel in wheels if wheel.name.startswith("umbra_compute-")))
    package = ROOT / "umbra_compute"
    for path in package.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert str(path.relative_to(ROOT)) in held
    for path in (ROOT / "sql" / "migrations").glob("*.sql"):
        assert f"umbra_compute/sql/migrations/{path.name}" in held
    assert all(name.startswith(("umbra_compute/", "umbra_compute-")) for name in held)


def test_the_agents_wheel_holds_all_of_the_package(wheels: list[Path]) -> None:
    held = names_in(next(wheel for wheel in wheels if wheel.name.startswith("umbra_agent-")))
    for path in (ROOT / "agent" / "umbra_agent").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert str(path.relative_to(ROOT / "agent")) in held
    assert all(name.startswith(("umbra_agent/", "umbra_agent-")) for name in held)


@pytest.mark.parametrize("package", OURS)
def test_what_runs_is_what_the_wheel_brought(programs: Path, package: str) -> None:
    script = f"import {package}; print({package}.__file__)"
    assert str(programs.parent) in run(programs / "python", "-c", script, cwd=programs)


def test_the_commands_run(programs: Path) -> None:
    assert "serve" in run(programs / "umbra-compute", "--help", cwd=programs)
    assert "detect" in run(programs / "umbra-agent", "--help", cwd=programs)
    assert "RAM TOTAL" in run(programs / "umbra-agent", "detect", cwd=programs)


def test_the_migrations_are_those_of_the_checkout(programs: Path) -> None:
    script = (
        "from umbra_compute import migrate\n"
        "for one in migrate.shipped(): print(one.title, one.checksum)"
    )
    told = run(programs / "python", "-c", script, cwd=programs).splitlines()
    assert told == [f"{one.title} {one.checksum}" for one in migrate.shipped()]
    assert told


def test_the_consoles_assets_can_be_read(programs: Path) -> None:
    script = (
        "from importlib.resources import files\n"
        "for one in files('umbra_compute.console').iterdir(): print(one.name)"
    )
    told = run(programs / "python", "-c", script, cwd=programs).split()
    shipped = {path.name for path in (ROOT / "umbra_compute" / "console").iterdir()}
    assert shipped - {"__pycache__"} <= set(told)


async def test_the_wheel_migrates_a_database(programs: Path, empty_dsn: str) -> None:
    command = programs / "umbra-compute"
    assert "0001_queue" in run(command, "migrate", "--dsn", empty_dsn, cwd=programs)
    again = run(command, "migrate", "--check", "--dsn", empty_dsn, cwd=programs)
    assert "up to date" in again
