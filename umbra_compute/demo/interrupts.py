"""Signals that end the demo: raised where it can clean up after itself, held back where not."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Final, Self

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """While it is entered, the signals of ENDING raise KeyboardInterrupt, once `held` is left.

    Enter it from the main thread, which handles signals.
    """

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}
        self._depth = 0
        self._asked = False

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._handle) for number in ENDING}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let the block run to its end: a process that was started must be noted, say."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        self._raise_if_asked()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        self._raise_if_asked()

    def _raise_if_asked(self) -> None:
        if self._asked and self._depth == 0:
            self._asked = False
            raise KeyboardInterrupt
