"""`type = "command"`: a program, its payload on standard input, its result in a file or printed."""

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from umbra_agent.config import Handler
from umbra_agent.handlers import files
from umbra_agent.outcome import Ended
from umbra_agent.runner import process
from umbra_agent.runner.output import Output, Whole
from umbra_agent.runner.process import Run

LARGEST_RESULT: Final = 1024 * 1024  # the controller takes bodies of 1 MiB
TAIL: Final = 4096  # bytes of output that an error quotes


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
        """Start the program. Raises process.CannotStart, or OSError for the work folder."""
        payload = json.dumps(job["payload"], ensure_ascii=False).encode("utf-8", "replace")
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

    def progress(self) -> files.Progress | None:
        """Return what the program says of itself; None: nothing yet."""
        return files.progress(self.folder / "progress")

    def clean(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _result(self, printed: Whole) -> tuple[bool, Any, str | None]:
        if self.handler.result == "stdout":
            if printed.is_over:
                return False, None, f"it printed more than {LARGEST_RESULT} bytes"
            return _parsed(bytes(printed.data), "what it printed")
        try:
            data = files.read(self.folder / "result.json", LARGEST_RESULT)
        except FileNotFoundError:
            return False, None, "it wrote no file at UMBRA_RESULT_FILE"
        except files.Unusable as exc:
            return False, None, f"the result file {exc}"
        return _parsed(data, "the result file")


def _parsed(data: bytes, what: str) -> tuple[bool, Any, str | None]:
    try:
        return True, json.loads(data, parse_constant=_refuse, object_pairs_hook=_once), None
    except (ValueError, RecursionError) as exc:
        return False, None, f"{what} is no JSON ({exc})"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is none")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that comes twice: one of its values would be lost without a word."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(n for n in names if names.count(n) > 1)!a} comes twice")
    return made
