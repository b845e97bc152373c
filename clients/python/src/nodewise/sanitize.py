"""Sanitizes texts of the service and the apiserver for logs, errors, outcomes and Events. A faulty service may send any
text of any length, and an apiserver quotes texts of other clients.
"""

import unicodedata

MAX_BYTES = 1_000
"""Most bytes of a sanitized text."""
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def one_line(text: str) -> str:
    """Returns a text on one line, with control characters escaped, cut to `MAX_BYTES` bytes."""
    short, size = [], 0
    for character in text:
        is_control = unicodedata.category(character) == "Cc"
        said = _ESCAPES.get(character, f"\\u{{{ord(character):x}}}") if is_control else character
        size += len(said.encode(errors="replace"))
        if size > MAX_BYTES:
            short.append("…")
            break
        short.append(said)
    return "".join(short)
