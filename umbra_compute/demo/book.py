"""The text: the language reference that every CPython carries in pydoc_data.topics."""

from collections.abc import Iterator
from typing import Final

import attrs

SECTION_CHARS: Final = 2000  # about a page


@attrs.frozen
class Document:
    """A section of a topic: whole paragraphs of about SECTION_CHARS."""

    topic: str
    part: int
    text: str


def documents() -> list[Document]:
    """Return every topic of the reference, cut into sections at its paragraphs."""
    from pydoc_data.topics import topics  # noqa: PLC0415 - half a megabyte

    return [
        Document(topic, part, text)
        for topic, whole in sorted(topics.items())
        for part, text in enumerate(_sections(whole), 1)
    ]


def _sections(whole: str) -> Iterator[str]:
    gathered: list[str] = []
    for paragraph in whole.split("\n\n"):
        if gathered and sum(map(len, gathered)) + len(paragraph) > SECTION_CHARS:
            yield "\n\n".join(gathered)
            gathered = []
        gathered.append(paragraph)
    yield "\n\n".join(gathered)
