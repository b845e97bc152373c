"""The addresses that policies name, and the hosts that the operator allows."""

import ipaddress
import re
from collections.abc import Iterable
from typing import NamedTuple

_HOST = r"(?P<host>[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])"
_PORT = r":(?P<port>[1-9][0-9]{0,4})"
_URL = re.compile(
    rf"(?P<scheme>https?)://{_HOST}(?:{_PORT})?(?P<path>[/?][!-\"$-~]*)?(?:#[!-~]*)?", re.IGNORECASE | re.ASCII
)
"""In ASCII: in Unicode there are other letters whose lower case is an ASCII letter, such as the Kelvin sign."""
_AUTHORITY = re.compile(_HOST + _PORT)
_CREDENTIAL = r"(?P<credential>[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)"
_ALLOWED = re.compile(rf"{_HOST}(?:{_PORT})?(?:={_CREDENTIAL})?")
"""What two readers could take for different hosts matches none of these."""


class Address(NamedTuple):
    """Whom a policy asks. What is checked is what is called: both use these fields, and no text of the policy."""

    host: str
    """In lower case. An IPv6 address is in brackets."""
    port: int
    tls: bool
    path: str = "/"
    """Path and query; begins with a slash."""

    @classmethod
    def of_url(cls, url: str) -> "Address":
        """The address of a URL. Raises `ValueError`."""
        found = _URL.fullmatch(url)
        if found is None:
            raise ValueError(f"{url!r} is no URL such as http://HOST, https://HOST/PATH or http://HOST:PORT/PATH")
        tls, path = found["scheme"].lower() == "https", found["path"] or "/"
        port = int(found["port"] or (443 if tls else 80))
        return cls._checked(url, found["host"], port, tls, path if path.startswith("/") else f"/{path}")

    @classmethod
    def of_authority(cls, text: str, *, tls: bool) -> "Address":
        """The address of `HOST:PORT`. Raises `ValueError`."""
        found = _AUTHORITY.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not HOST:PORT")
        return cls._checked(text, found["host"], int(found["port"]), tls)

    @classmethod
    def _checked(cls, text: str, host: str, port: int, tls: bool, path: str = "/") -> "Address":
        if port > 65_535 or not _is_host(host):
            raise ValueError(f"{text!r} names no host and port")
        return cls(host.lower(), port, tls, path)

    @property
    def is_loopback(self) -> bool:
        """Whether the host is this machine, whatever a name server says."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    @property
    def url(self) -> str:
        """The URL."""
        return f"{'https' if self.tls else 'http'}://{self}{self.path}"

    def __str__(self) -> str:
        # Paths and queries may have secrets.
        return f"{self.host}:{self.port}"


class AllowedHost(NamedTuple):
    """A host that the operator allows: `HOST[:PORT][=CREDENTIAL]`. Without a port, every port of it is allowed."""

    host: str
    port: int | None
    credential: str | None
    """The name of the file with the token that the host may get."""

    @classmethod
    def parse(cls, text: str) -> "AllowedHost":
        """Reads one. Raises `ValueError`."""
        found = _ALLOWED.fullmatch(text)
        if found is None or ".." in (found["credential"] or "") or not _is_host(found["host"]):
            raise ValueError(
                f"{text!r} is no host: write HOST, HOST:PORT, HOST=CREDENTIAL or HOST:PORT=CREDENTIAL, without a "
                "scheme, a path or a user; an IPv6 address in brackets"
            )
        port = int(found["port"]) if found["port"] else None
        if port is not None and port > 65_535:
            raise ValueError(f"{text!r} is no host: {port} is no port")
        return cls(found["host"].lower(), port, found["credential"])

    def allows(self, address: Address) -> bool:
        """Whether this is the host of an address."""
        return self.host == address.host and self.port in (None, address.port)

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


def _is_host(host: str) -> bool:
    if not host.startswith("["):
        return True
    try:
        ipaddress.IPv6Address(host.strip("[]"))
    except ValueError:
        return False
    return True


def check(hosts: Iterable[AllowedHost], address: Address, credential: str) -> None:
    """Checks that the operator allows the address, and that it gets this credential; an empty name means none. Raises
    `ValueError`.
    """
    allowed = [host for host in hosts if host.allows(address)]
    if not allowed:
        raise ValueError(f"the executor may not call {address}: whoever runs it allows hosts")
    if not credential:
        return
    if all(host.credential != credential for host in allowed):
        raise ValueError(f"credential {credential!r} may not be sent to {address}: whoever runs the executor allows it")
    if not address.tls and not address.is_loopback:
        raise ValueError(f"credential {credential!r} is not sent to {address} in plain text: use https")
