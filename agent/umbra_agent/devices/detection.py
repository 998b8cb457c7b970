"""Detection in a child process with a time limit. A hung driver is an unhealthy device."""

import asyncio
import json
import sys
from contextlib import suppress
from typing import Any, Final

import attrs

from umbra_agent import log
from umbra_agent.key import environment_of_jobs

ARGV: Final = (sys.executable, "-m", "umbra_agent.devices")
REAP_S: Final = 1.0  # what a killed child is given to be gone

Device = dict[str, Any]


@attrs.frozen
class Detection:
    """What was found. devices None: nothing has been found yet."""

    devices: tuple[Device, ...] | None = None

    def report(self) -> list[Device] | None:
        """Return what a heartbeat says, without what only people read."""
        if self.devices is None:
            return None
        return [{k: v for k, v in device.items() if k != "why"} for device in self.devices]


class Detector:
    """Keeps the last detection. At most one child at a time, a hung one included."""

    def __init__(self, limit_s: float, argv: tuple[str, ...] = ARGV) -> None:
        self.last = Detection()
        self._limit_s = limit_s
        self._argv = argv
        self._hung: asyncio.subprocess.Process | None = None

    async def detect(self) -> Detection:
        """Detect, within the limit; what cannot be looked at keeps its figures and is unhealthy."""
        if self._hung is not None and self._hung.returncode is None:
            self.last = self._unhealthy("device detection hangs and cannot be ended")
            return self.last
        self._hung = None
        child = await asyncio.create_subprocess_exec(
            *self._argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            env=environment_of_jobs(),
        )
        try:
            async with asyncio.timeout(self._limit_s):
                output, _ = await child.communicate()
        except TimeoutError:
            reason = f"device detection did not answer within {self._limit_s:g} s"
            self.last = self._unhealthy(reason)
            log.warning("detection.hung", limit_s=self._limit_s)
        else:
            self.last = self._read(child.returncode, output)
        finally:
            await self._end(child)
        return self.last

    def _read(self, code: int | None, output: bytes) -> Detection:
        try:
            devices = json.loads(output) if code == 0 else None
        except ValueError:
            devices = None
        if devices is None:
            log.warning("detection.failed", exit_code=code)
            return self._unhealthy(f"device detection ended with exit code {code}")
        return Detection(tuple(devices))

    def _unhealthy(self, reason: str) -> Detection:
        known = () if self.last.devices is None else self.last.devices
        return Detection(tuple({**d, "healthy": False, "health_reason": reason} for d in known))

    async def _end(self, child: asyncio.subprocess.Process) -> None:
        if child.returncode is not None:
            return
        with suppress(ProcessLookupError):
            child.kill()
        try:
            async with asyncio.timeout(REAP_S):
                await child.wait()
        except TimeoutError:
            self._hung = child
