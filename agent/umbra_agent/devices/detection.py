"""Detection in a child process with a time limit. A hung driver is an unhealthy device."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs

from umbra_agent import log

ARGV: Final = (sys.executable, "-m", "umbra_agent.devices")
REAP_S: Final = 1.0  # what a killed child is given to be gone

Device = dict[str, Any]

UNSEEN: Final[Device] = {"label": "cpu", "kind": "cpu"}
"""What every machine has, for when nothing could be looked at yet: unhealthy, and no figures."""


@attrs.frozen(kw_only=True)
class Detection:
    """What was found. devices None: nothing has been looked for yet. `flaw`: no job can work."""

    devices: tuple[Device, ...] | None = None
    disk_free_mb: int | None = None
    flaw: str | None = None
    doubts: tuple[str, ...] = ()

    @property
    def is_usable(self) -> bool:
        devices = () if self.devices is None else self.devices
        return self.flaw is None and any(device["healthy"] for device in devices)

    def report(self) -> list[Device] | None:
        """Return what a heartbeat says, without what only people read."""
        if self.devices is None:
            return None
        devices = [{k: v for k, v in device.items() if k != "why"} for device in self.devices]
        if self.flaw is None:
            return devices
        return [{**d, "healthy": False, "health_reason": self.flaw} for d in devices]


class Detector:
    """Keeps the last detection. At most one child at a time, a hung one included."""

    def __init__(
        self,
        limit_s: float,
        work_dir: Path,
        environment: Mapping[str, str],
        argv: tuple[str, ...] = ARGV,
    ) -> None:
        self.last = Detection()
        self._limit_s = limit_s
        self._argv = (*argv, str(work_dir))
        self._environment = environment
        self._hung: asyncio.subprocess.Process | None = None

    async def detect(self) -> Detection:
        """Detect, within the limit; what cannot be looked at keeps its figures and is unhealthy."""
        if self._hung is not None and self._hung.returncode is None:
            self.last = self._unhealthy("device detection hangs and cannot be ended")
            return self.last
        self._hung = None
        try:
            child = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
                env=self._environment,
            )
        except OSError as exc:
            self.last = self._unhealthy(f"device detection cannot be started: {exc.strerror}")
            return self.last
        try:
            async with asyncio.timeout(self._limit_s):
                output, _ = await child.communicate()
        except TimeoutError:
            reason = f"device detection did not answer within {self._limit_s:g} s"
            self.last = self._unhealthy(reason)
        else:
            self.last = self._read(child.returncode, output)
        finally:
            await self._end(child)
        return self.last

    def doubt(self, flaw: str) -> None:
        """Take it that no job can work here, until the next detection finds otherwise."""
        log.warning("node.doubted", reason=flaw)
        self.last = attrs.evolve(self.last, flaw=flaw)

    def _read(self, code: int | None, output: bytes) -> Detection:
        try:
            told = json.loads(output) if code == 0 else None
        except ValueError:
            told = None
        if told is None:
            return self._unhealthy(f"device detection ended with exit code {code}")
        told["devices"], told["doubts"] = tuple(told["devices"]), tuple(told["doubts"])
        found = Detection(**told)
        if found.doubts != self.last.doubts:
            log.warning("detection.doubted", doubts=found.doubts)
        if found.flaw is not None and found.flaw != self.last.flaw:
            log.warning("node.doubted", reason=found.flaw)
        return found

    def _unhealthy(self, reason: str) -> Detection:
        known = (UNSEEN,) if self.last.devices is None else self.last.devices
        if [device.get("health_reason") for device in known] != [reason] * len(known):
            log.warning("detection.failed", reason=reason)
        devices = tuple({**d, "healthy": False, "health_reason": reason} for d in known)
        return attrs.evolve(self.last, devices=devices)

    async def _end(self, child: asyncio.subprocess.Process) -> None:
        if child.returncode is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # with the tools that it started
        try:
            async with asyncio.timeout(REAP_S):
                await child.wait()
        except TimeoutError:
            self._hung = child
