"""Texts that outcomes carry: kept, however long, as far as a person will read."""

from typing import Final

MOST_CHARS: Final = 16 * 1024


def shortened(text: str) -> str:
    """Return the text, its middle left out if it is longer than MOST_CHARS.

    The head says what was run, the tail what went wrong.
    """
    if len(text) <= MOST_CHARS:
        return text
    left_out = f"\n[… {len(text) - MOST_CHARS} characters left out …]\n"
    kept = (MOST_CHARS - len(left_out)) // 2
    return text[:kept] + left_out + text[-kept:]
