"""Parses label selectors in the syntax of `kubectl get --selector`: `app=agent,tier in (a,b),!legacy`.

Accepts and refuses the same texts as `labels.Parse` of Kubernetes.
"""

import re
from collections import deque

from .selector import Requirement, Selector

_TOKEN = re.compile(r"==|!=|[=!<>(),]|[^\s=!<>(),]+")
_WORD = re.compile(r"[^\s=!<>(),]+")
_NAME = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,61})?[A-Za-z0-9]")
_PREFIX = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
_MAX_PREFIX = 253
_EQUALITY = {"=": "In", "==": "In", "!=": "NotIn"}
_SETS = {"in": "In", "notin": "NotIn"}
_ORDER = {">": "Gt", "<": "Lt"}


def parse(text: str) -> Selector:
    """Parses a selector. The empty one selects everything. Raises `ValueError` with the reason."""
    try:
        return Selector(tuple(_requirements(deque(_TOKEN.findall(text)))))
    except ValueError as error:
        raise ValueError(
            f"the label selector {text!r} cannot be read: {error}. Write it as for kubectl --selector, "
            "for example 'app=agent,tier in (a,b),!legacy'"
        ) from None


def _requirements(tokens: deque[str]) -> list[Requirement]:
    found = []
    while tokens:
        found.append(_requirement(tokens))
        if tokens:
            _expect(",", tokens)
            if not tokens:
                raise ValueError("it ends with a comma")
    return found


def _requirement(tokens: deque[str]) -> Requirement:
    is_absent = tokens[0] == "!"
    if is_absent:
        tokens.popleft()
    key = _key(_next(tokens, "the key of a label"))
    if is_absent:
        return Requirement(key, "DoesNotExist", frozenset())
    if not tokens or tokens[0] == ",":
        return Requirement(key, "Exists", frozenset())
    operator = tokens.popleft()
    if operator in _EQUALITY:
        return Requirement(key, _EQUALITY[operator], frozenset([_value(tokens)]))
    if operator in _SETS:
        return Requirement(key, _SETS[operator], frozenset(_values(tokens)))
    if operator in _ORDER:
        number = _value(tokens)
        if not number.isdecimal():
            raise ValueError(f"{operator} compares with a whole number, and {number!r} is none")
        return Requirement(key, _ORDER[operator], frozenset([number]))
    raise ValueError(f"{operator!r} stands where an operator is expected: =, ==, !=, in, notin, > or <")


def _values(tokens: deque[str]) -> list[str]:
    """The values in parentheses. A value between two delimiters may be empty."""
    _expect("(", tokens)
    values = [_value(tokens)]
    while tokens and tokens[0] == ",":
        tokens.popleft()
        values.append(_value(tokens))
    _expect(")", tokens)
    return values


def _value(tokens: deque[str]) -> str:
    """The next value, which may be empty."""
    if not tokens or tokens[0] in (",", ")"):
        return ""
    value = _next(tokens, "a value")
    if not _NAME.fullmatch(value):
        raise ValueError(
            f"{value!r} cannot be the value of a label: that has at most 63 letters, digits, '-', '_' and '.', "
            "and begins and ends with a letter or a digit"
        )
    return value


def _key(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if not _NAME.fullmatch(name) or (slash and not (_PREFIX.fullmatch(prefix) and len(prefix) <= _MAX_PREFIX)):
        raise ValueError(f"{key!r} cannot be the key of a label: that is NAME or DNS-SUBDOMAIN/NAME")
    return key


def _next(tokens: deque[str], what: str) -> str:
    if not tokens:
        raise ValueError(f"it ends where {what} is expected")
    token = tokens.popleft()
    if not _WORD.fullmatch(token):
        raise ValueError(f"{token!r} stands where {what} is expected")
    return token


def _expect(what: str, tokens: deque[str]) -> None:
    found = tokens.popleft() if tokens else "the end"
    if found != what:
        raise ValueError(f"{found!r} stands where {what!r} is expected")
