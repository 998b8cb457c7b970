"""What programs leave in files, and what they may not cost the agent."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from umbra_agent.handlers import files

LIMIT = 1000


@pytest.mark.parametrize("what", ["pipe", "device", "folder", "loop", "large"])
def test_only_plain_files_of_bounded_size_are_read(tmp_path: Path, what: str) -> None:
    path = tmp_path / "result.json"
    match what:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path)
        case "large":
            path.write_bytes(bytes(LIMIT + 1))
    with pytest.raises(files.Unusable):
        files.read(path, LIMIT)
    assert what == "large" or files.progress(path) is None


def test_a_file_of_the_largest_size_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(b"x" * LIMIT)
    assert len(files.read(path, LIMIT)) == LIMIT


@pytest.mark.parametrize(
    ("text", "fraction", "message"),
    [
        ('{"fraction": 0.25, "message": "a"}\n', 0.25, "a"),
        ('{"fraction": 0, "message": ""}\n', 0, ""),
        ('{"fraction": true}\n', None, None),
        ('{"fraction": 1.5, "message": 3}\n', None, None),
        ('{"fraction": NaN, "message": "a"}\n', None, "a"),
        ("page 3\n", None, "page 3"),
        ("page 3", None, "page 3"),
        ("one\ntwo\nthr", None, "two"),
        ("[1]\n", None, "[1]"),
        ("[" * 60_000, None, "[" * files.LONGEST_MESSAGE),
        ('{"message": "\\ud800"}\n', None, "\ufffd"),
        ('{"message": "a\\u0000b"}\n', None, "a\ufffdb"),
    ],
)
def test_the_last_line_is_the_progress(
    tmp_path: Path, text: str, fraction: float | None, message: str | None
) -> None:
    path = tmp_path / "progress"
    path.write_text(text)
    assert files.progress(path) == {"fraction": fraction, "message": message}


def test_no_progress_is_none(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    assert files.progress(path) is None
    path.touch()
    assert files.progress(path) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | st.text().map(lambda text: json.dumps({"message": text}).encode()))
def test_whatever_is_written_it_can_be_sent_and_stored(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "progress"
    path.write_bytes(data)
    sent = json.dumps(files.progress(path), ensure_ascii=False, allow_nan=False)
    assert "\0" not in sent.encode().decode()
    assert "\\u0000" not in sent
