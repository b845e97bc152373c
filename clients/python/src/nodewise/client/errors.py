"""Why there is no answer from the planning service. Nothing may be written to the cluster then."""


class ServiceError(Exception):
    """There is no plan."""


class UnreachableError(ServiceError):
    """No replica answered in time: the same request may succeed later."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"no replica of the planning service answered: {reason}")


class RefusedError(ServiceError):
    """A replica refused the request itself."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the planning service refused the request: {reason}")
