"""Tests whom a policy may have asked, by the vectors that all executors share (L-32)."""

from typing import Any

import pytest

from nodewise.analysis.address import Address, AllowedHost, check

from .conftest import cases

UNREADABLE = r"is no URL|is not HOST:PORT|names no host and port"
REFUSED = {"host": "may not call", "credential": "may not be sent", "plain_text": "in plain text"}


def read(case: dict[str, Any]) -> Address:
    return Address.of_url(case["url"]) if "url" in case else Address.of_authority(case["authority"], tls=case["tls"])


@cases("analysis_addresses", "why")
def test_addresses(case: dict[str, Any]) -> None:
    if "flag" in case:
        if "refused" in case:
            with pytest.raises(ValueError, match="is no host"):
                AllowedHost.parse(case["flag"])
        else:
            host = AllowedHost.parse(case["flag"])
            assert (str(host), host.credential) == (case["host"], case.get("credential"))
        return
    if case.get("refused") == "address":
        with pytest.raises(ValueError, match=UNREADABLE):
            read(case)
        return
    allowed, address = [AllowedHost.parse(text) for text in case["hosts"]], read(case)
    if "refused" in case:
        with pytest.raises(ValueError, match=REFUSED[case["refused"]]):
            check(allowed, address, case.get("credential", ""))
    else:
        check(allowed, address, case.get("credential", ""))
        assert address._asdict() == case["asks"]
