"""What a process prints: kept as bytes in bounded memory, its head and its tail."""

from typing import Final

import attrs

HEAD: Final = 16 * 1024
TAIL: Final = 48 * 1024


@attrs.define
class Output:
    """The first HEAD and the last TAIL bytes of a stream, and how many lay between."""

    _head: bytearray = attrs.Factory(bytearray)
    _tail: bytearray = attrs.Factory(bytearray)
    _dropped: int = 0

    def add(self, chunk: bytes) -> None:
        room = HEAD - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        if len(self._tail) > 2 * TAIL:
            self._dropped += len(self._tail) - TAIL
            del self._tail[:-TAIL]

    def text(self, most: int = HEAD + TAIL) -> str:
        """Return the end of what was printed, at most `most` bytes, as text that can be stored."""
        whole = bytes(self._head)
        if self._dropped:
            whole += f"\n[… {self._dropped} bytes left out …]\n".encode()
        whole += bytes(self._tail)
        return whole[-most:].decode("utf-8", "replace").replace("\0", "\ufffd")


@attrs.define
class Whole:
    """Everything that was printed, up to a limit: the result, when it is printed."""

    limit: int
    data: bytearray = attrs.Factory(bytearray)
    is_over: bool = False

    def add(self, chunk: bytes) -> None:
        if len(self.data) + len(chunk) > self.limit:
            self.is_over = True
            return
        self.data += chunk
