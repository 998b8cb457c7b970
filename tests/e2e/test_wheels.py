"""What is shipped: both wheels, in an empty environment, without the checkout."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from umbra_compute import migrate

ROOT = Path(__file__).parents[2]


def run(*argv: str | Path, cwd: Path) -> str:
    inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH",)}
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False, env=inherited)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the commands' folder of an environment that holds our wheels.

    The dependencies are those of this run, seen through a .pth file; our own files come from the
    wheels alone.
    """
    folder = tmp_path_factory.mktemp("wheels")
    for source in (ROOT, ROOT / "agent"):
        build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder)
        run(*build, source, cwd=folder)
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / "bin"
    wheels = sorted(folder.glob("*.whl"))
    assert [wheel.name.split("-")[0] for wheel in wheels] == ["umbra_agent", "umbra_compute"]
    run(programs / "pip", "install", "--no-deps", "--no-index", "--quiet", *wheels, cwd=folder)
    purelib = Path(run(programs / "python", "-c", PURELIB, cwd=folder).strip())
    (purelib / "zz_dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return programs


PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"


def test_the_commands_run(installed: Path) -> None:
    for command in ("umbra-compute", "umbra-agent"):
        assert "serve" in run(installed / command, "--help", cwd=installed) or command != (
            "umbra-compute"
        )
    assert "RAM TOTAL" in run(installed / "umbra-agent", "detect", cwd=installed)


def test_the_wheel_holds_its_migrations_and_assets(installed: Path) -> None:
    script = """
import importlib.resources, umbra_compute, umbra_compute.migrate as migrate
print(umbra_compute.__file__)
print(",".join(f"{m.version}:{m.checksum}" for m in migrate.shipped()))
assets = importlib.resources.files("umbra_compute.console")
print(",".join(sorted(entry.name for entry in assets.iterdir())))
"""
    where, migrations, assets = run(installed / "python", "-c", script, cwd=installed).splitlines()
    assert str(installed.parent) in where
    assert migrations == ",".join(f"{m.version}:{m.checksum}" for m in migrate.shipped())
    for name in (ROOT / "umbra_compute" / "console").iterdir():
        if name.name != "__pycache__":
            assert name.name in assets.split(",")


async def test_the_wheel_migrates_a_database(installed: Path, empty_dsn: str) -> None:
    told = run(installed / "umbra-compute", "migrate", "--dsn", empty_dsn, cwd=installed)
    assert "0001_queue" in told
    again = run(
        installed / "umbra-compute", "migrate", "--check", "--dsn", empty_dsn, cwd=installed
    )
    assert "up to date" in again
