"""Makes the measurements for the analysis of RolloutPolicies: asks Prometheus, webhooks and VerdictServices (L-31).

A policy is written by whoever owns a namespace, and the executor makes the call, from its own place in the network. So
it calls only hosts that its operator allows, follows no redirect, limits time and answer, and sends a token only to a
host for which the operator allowed it (L-32). What cannot be measured is an error and no failure of a revision.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlencode

from .. import v1, waiting
from ..measurements import Result, Subject
from . import answers
from .address import Address, AllowedHost, check
from .calls import Post, get_verdict, post, read_token
from .turns import Turns

__all__ = ["Analyzer"]


class Analyzer:
    """A `Measurer` that makes these calls."""

    def __init__(
        self,
        hosts: Iterable[str],
        *,
        credentials: "str | Path | None" = None,
        authorities: bytes | None = None,
        timeout: float = 10.0,
    ) -> None:
        """`hosts` are those that may be called: `HOST[:PORT][=CREDENTIAL]`. A credential is the name of a file with a
        bearer token in the folder `credentials`, and only its host gets the token. `authorities` are the accepted
        certificate authorities as PEM; by default those of the system. `timeout` is the longest time of a call, in
        seconds; the interval of the check limits it as well. Raises `ValueError` for a host that cannot be read.
        """
        self._allowed = [AllowedHost.parse(text) for text in hosts]
        self.hosts = sorted({str(host) for host in self._allowed})
        """The hosts that may be called, as a snapshot has them."""
        self._credentials = None if credentials is None else Path(credentials)
        self._authorities = authorities
        self._timeout = timeout
        self._turns = Turns()

    async def measure(self, subject: Subject, request: v1.Measure) -> Result:
        """Makes a measurement. Raises `ValueError`: its text says who was asked, and what was found."""
        address = _address(request)
        check(self._allowed, address, request.credential)
        async with self._turns.take(subject.workload.namespace, request.id):
            # A call that takes longer than the interval of its check is of no use, and would keep others waiting.
            limit = min(self._timeout, subject.interval)
            try:
                async with waiting.timeout(limit):
                    return await self._ask(address, subject, request, limit)
            except asyncio.TimeoutError:
                raise ValueError(f"{address}: no answer within {limit:g} s") from None
            except ValueError as error:
                raise ValueError(f"{address}: {error}") from error

    async def _ask(self, address: Address, subject: Subject, request: v1.Measure, limit: float) -> Result:
        token = await read_token(self._credentials, request.credential) if request.credential else None
        match request.WhichOneof("provider"):
            case "prometheus":
                form = urlencode({"query": request.prometheus.query, "timeout": f"{limit * 1000:.0f}ms"})
                call = Post(_api(address), "application/x-www-form-urlencoded", form.encode(), token)
                return answers.of_prometheus(await post(call, self._authorities))
            case "webhook":
                call = Post(address, "application/json", subject.status, token)
                return answers.of_webhook(await post(call, self._authorities))
        about = v1.GetVerdictRequest(
            id=request.id, policy_name=request.policy_name, workload=subject.workload, status=subject.status
        )
        return await get_verdict(address, about, token, self._authorities, limit)


def _address(request: v1.Measure) -> Address:
    """Whom a request asks. Raises `ValueError`."""
    match request.WhichOneof("provider"):
        case "prometheus":
            return Address.of_url(request.prometheus.address)
        case "webhook":
            return Address.of_url(request.webhook.url)
        case "verdict_service":
            return Address.of_authority(request.verdict_service.address, tls=request.verdict_service.tls)
    raise ValueError("the measurement has no provider that this executor knows")


def _api(address: Address) -> Address:
    """The address of the API of a Prometheus. Raises `ValueError`."""
    if "?" in address.path:
        raise ValueError("the address of a Prometheus has no query")
    return address._replace(path=f"{address.path.rstrip('/')}/api/v1/query")
