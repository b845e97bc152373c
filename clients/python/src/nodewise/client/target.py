"""What may be given as a server: one replica, or a name of which every record is one."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Fixed:
    """`http://host:port`: one replica."""

    address: str

    def __str__(self) -> str:
        return f"http://{self.address}"


@dataclass(frozen=True, slots=True)
class Dns:
    """`dns:///host:port`: a replica at each A and AAAA record, as of a headless Service."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"dns:///{address(self.host, self.port)}"


class TargetError(ValueError):
    """Not something that replicas can be found by."""


def address(host: str, port: int) -> str:
    """`host:port`: where a replica is, and what it is known by."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse(text: str) -> Fixed | Dns:
    """Reads a target."""
    scheme, _, rest = text.partition(":")
    if scheme == "http":
        return _fixed(text)
    if scheme == "dns":
        return _dns(text, rest)
    raise TargetError(
        f"{text!r} is not the address of a planning service: must be http://HOST:PORT or dns:///HOST:PORT"
    )


def _fixed(text: str) -> Fixed:
    try:
        url = urlsplit(text)
        host, port = url.hostname, url.port
    except ValueError as error:
        raise TargetError(f"{text!r} is not the address of a planning service: {error}") from error
    bare = url.path in ("", "/") and not (url.query or url.fragment or url.username or url.password)
    if not host or not bare or "@" in url.netloc or url.netloc.endswith(":"):
        raise TargetError(f"{text!r} must be http://HOST:PORT and nothing more")
    return Fixed(address(host, 80 if port is None else port))


def _dns(text: str, rest: str) -> Dns:
    if rest.startswith("//") and not rest.startswith("///"):
        raise TargetError(
            f"{text!r}: names are looked up as the system does it, write dns:///HOST:PORT with three slashes"
        )
    match = re.fullmatch(r"(?:///)?(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})", rest)
    port = int(match[3]) if match else 0
    if match is None or not 0 < port < 65536:
        raise TargetError(f"{text!r} must be dns:///HOST:PORT; both are needed")
    return Dns(match[1] or match[2], port)
