"""What an agent's command does with one document: a small, real text analysis.

Payload on standard input: {"topic", "part", "text"}. The result goes to UMBRA_RESULT_FILE.

Reading ease is Flesch's: 206.835 - 1.015 x words per sentence - 84.6 x syllables per word; about
60 to 70 is plain English, below 30 is hard. Syllables are groups of vowels, less a silent final e.
Terms tell most of a document where they are frequent in it and rare in the whole reference
(tf-idf: term frequency x log of documents per documents that hold the term).
"""

import json
import math
import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

from umbra_compute.demo.book import documents

TERMS: Final = 5
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'-]+")
_SENTENCE: Final = re.compile(r"[.!?]+(?:\s|$)")
_VOWELS: Final = re.compile(r"[aeiouy]+")
_SHORTEST_TERM: Final = 4


def analyse(text: str) -> dict[str, Any]:
    """Return counts, reading ease, and the most telling terms of a text."""
    words = [word.lower() for word in _WORD.findall(text)]
    sentences = max(1, len(_SENTENCE.findall(text)))
    syllables = sum(map(count_syllables, words))
    ease = None
    if words:
        ease = 206.835 - 1.015 * len(words) / sentences - 84.6 * syllables / len(words)
    return {
        "characters": len(text),
        "words": len(words),
        "sentences": sentences,
        "reading_ease": None if ease is None else round(ease, 1),
        "longest_word": max(words, key=len, default=None),
        "terms": telling_terms(words),
    }


def count_syllables(word: str) -> int:
    """Return the syllables of an English word, at least one."""
    groups = len(_VOWELS.findall(word))
    silent = word.endswith("e") and not word.endswith("le") and groups > 1
    return max(1, groups - silent)


def telling_terms(words: list[str]) -> list[str]:
    """Return up to TERMS words that tell this text from the rest of the reference."""
    holds: Counter[str] = Counter()
    others = documents()
    for document in others:
        holds.update({word.lower() for word in _WORD.findall(document.text)})
    counts = Counter(word for word in words if len(word) >= _SHORTEST_TERM)

    def weight(word: str) -> float:
        return counts[word] * math.log((1 + len(others)) / (1 + holds[word]))

    return sorted(counts, key=lambda word: (-weight(word), word))[:TERMS]


def main() -> None:
    payload = json.load(sys.stdin)
    result = {"topic": payload["topic"], "part": payload["part"], **analyse(payload["text"])}
    Path(os.environ["UMBRA_RESULT_FILE"]).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
