"""Why there is no answer from the planning service. Nothing may be written to the cluster then."""

import grpc


class ServiceError(Exception):
    """There is no plan."""

    def __init__(self, message: str, code: grpc.StatusCode | None = None) -> None:
        super().__init__(message)
        self.code = code
        """The gRPC status of the last replica that was asked; None when none was."""


class UnreachableError(ServiceError):
    """No replica answered in time: the same request may succeed later."""


class RefusedError(ServiceError):
    """A replica refused the request itself."""
