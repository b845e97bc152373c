"""What a replica has said that it knows."""

from typing import NamedTuple

from .. import v1


class Capabilities(NamedTuple):
    """What a replica has said that it knows."""

    version: str
    kinds: tuple[str, ...]
    features: tuple[str, ...]

    @classmethod
    def of(cls, said: v1.GetCapabilitiesResponse) -> "Capabilities":
        """The capabilities of a response."""
        return cls(said.engine_version, tuple(said.workload_kinds), tuple(said.features))
