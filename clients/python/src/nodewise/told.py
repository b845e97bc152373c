"""What the service and the apiserver say in words, before it goes into logs, errors, outcomes and Events: a wrong
service may say anything, at any length, and an apiserver repeats what somebody wrote.
"""

import unicodedata

MAX_BYTES = 1_000
"""Most bytes of a text."""
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def in_short(text: str) -> str:
    """A text on one line, without control characters, cut to 1,000 bytes."""
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
