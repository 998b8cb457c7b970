"""What holds for the project as a whole."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_lock_names_no_index_and_hashes_everything() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock
    assert "--index-url" not in lock
    assert "--find-links" not in lock
    pins = [line for line in lock.splitlines() if re.match(r"[a-z]", line)]
    assert pins
    assert all(line.endswith("\\") for line in pins)  # a hash follows


def test_the_distributions_dependencies_are_in_the_lock() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    for path in ("pyproject.toml", "agent/pyproject.toml"):
        text = (ROOT / path).read_text()
        for name in re.findall(r'^    "([a-z0-9-]+)>=', text, re.MULTILINE):
            assert f"\n{name}==" in f"\n{lock}", name


def test_make_shows_what_a_newcomer_needs() -> None:
    told = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "make demo" in told
    assert "make test" in told


def test_decisions_have_numbers_of_their_own() -> None:
    numbers = [path.name[:4] for path in (ROOT / "docs" / "decisions").glob("*.md")]
    assert len(numbers) == len(set(numbers))
    assert {"0001", "0002", "0003", "0004"} <= set(numbers)


def test_no_file_is_too_long_to_read() -> None:
    for folder in ("umbra_compute", "agent", "tests", "bench"):
        for path in (ROOT / folder).rglob("*.py"):
            assert len(path.read_text().splitlines()) <= 400, path
