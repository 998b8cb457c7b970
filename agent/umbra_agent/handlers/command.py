"""`type = "command"`: a program, its payload on standard input, its result in a file or printed."""

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from umbra_agent.config import Handler
from umbra_agent.outcome import Ended
from umbra_agent.runner import process
from umbra_agent.runner.output import Output, Whole
from umbra_agent.runner.process import Run

LARGEST_RESULT: Final = 1024 * 1024  # the controller takes bodies of 1 MiB
TAIL: Final = 4096  # bytes of output that an error quotes
LARGEST_PROGRESS: Final = 64 * 1024
LONGEST_MESSAGE: Final = 4000

Progress = dict[str, Any]


@attrs.define
class Command:
    """One run of a handler's program for one job."""

    handler: Handler
    payload: bytes
    folder: Path
    _run: Run

    @classmethod
    async def start(
        cls,
        handler: Handler,
        job: Mapping[str, Any],
        device: str,
        environment: Mapping[str, str],
        work_dir: Path,
    ) -> "Command":
        """Start the program. Raises process.CannotStart; then nothing is left behind."""
        folder = Path(tempfile.mkdtemp(prefix=f"{job['id']}-", dir=work_dir))
        told = {
            "UMBRA_JOB_ID": job["id"],
            "UMBRA_ATTEMPT": str(job["attempt"]),
            "UMBRA_DEVICE": device,
            "UMBRA_RESULT_FILE": str(folder / "result.json"),
            "UMBRA_PROGRESS_FILE": str(folder / "progress"),
        }
        try:
            run = await process.start(
                handler.argv, {**environment, **handler.env, **told}, handler.cwd
            )
        except process.CannotStart:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        payload = json.dumps(job["payload"], ensure_ascii=False).encode()
        return cls(handler, payload, folder, run)

    async def ended(self) -> Ended:
        """Return how it ended, all that came of it included."""
        printed, said = Whole(LARGEST_RESULT), Output()
        stdout = printed if self.handler.result == "stdout" else said
        status = await self._run.ended(self.payload, stdout, said)
        has_result, result, flaw = self._result(printed)
        return Ended(
            status=status,
            has_result=has_result,
            result=result,
            flaw=flaw,
            tail=said.text(TAIL).strip(),
        )

    async def stop(self, grace_s: float) -> None:
        await self._run.stop(grace_s)

    def kill(self) -> None:
        self._run.kill()

    def progress(self) -> Progress | None:
        """Return what the program says of itself: the last whole line of its progress file."""
        try:
            with (self.folder / "progress").open("rb") as file:
                file.seek(0, 2)
                file.seek(max(0, file.tell() - LARGEST_PROGRESS))
                lines = file.read().decode("utf-8", "replace").splitlines()
        except OSError:
            return None
        return _progress(lines[-1]) if lines else None

    def clean(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _result(self, printed: Whole) -> tuple[bool, Any, str | None]:
        if self.handler.result == "stdout":
            if printed.is_over:
                return False, None, f"it printed more than {LARGEST_RESULT} bytes"
            return _parsed(bytes(printed.data), "what it printed")
        path = self.folder / "result.json"
        try:
            if path.stat().st_size > LARGEST_RESULT:
                return False, None, f"the result file has more than {LARGEST_RESULT} bytes"
            return _parsed(path.read_bytes(), "the result file")
        except FileNotFoundError:
            return False, None, "it wrote no file at UMBRA_RESULT_FILE"
        except OSError as exc:
            return False, None, f"the result file cannot be read ({exc.strerror})"


def _parsed(data: bytes, what: str) -> tuple[bool, Any, str | None]:
    try:
        return True, json.loads(data, parse_constant=_refuse), None
    except (ValueError, RecursionError):
        return False, None, f"{what} is no JSON"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _progress(line: str) -> Progress:
    """Read {"fraction", "message"}, or take the line as the message."""
    try:
        told = json.loads(line)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        return {"fraction": None, "message": _message(line)}
    fraction, message = told.get("fraction"), told.get("message")
    if isinstance(fraction, bool) or not isinstance(fraction, int | float):
        fraction = None
    return {
        "fraction": fraction if fraction is not None and 0 <= fraction <= 1 else None,
        "message": _message(message) if isinstance(message, str) else None,
    }


def _message(text: str) -> str:
    return text.replace("\0", "\ufffd")[:LONGEST_MESSAGE]
