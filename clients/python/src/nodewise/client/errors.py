"""Errors of the planning service. The executor must not write to the cluster after any of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import grpc


class ServiceError(Exception):
    """The service gave no response that can be used."""

    def __init__(self, message: str, code: grpc.StatusCode | None = None) -> None:
        super().__init__(message)
        self.code = code
        """The gRPC status of the last replica that was asked; None if no replica was asked."""


class UnreachableError(ServiceError):
    """No replica answered in time. The same request may succeed later."""


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One field that a replica rejected."""

    field: str
    """The path of the field in the request."""
    description: str
    """Why the replica rejected the field."""


class RefusedError(ServiceError):
    """A replica refused the request itself, and no other replica would accept it. Or no replica was asked, because all
    are too old for the request.
    """

    def __init__(
        self,
        message: str,
        code: grpc.StatusCode | None = None,
        violations: Sequence[FieldViolation] = (),
        lacks: str | None = None,
    ) -> None:
        super().__init__(message, code)
        self.violations = tuple(violations)
        """The fields that the replica rejected, from the detail `google.rpc.BadRequest` of its response. Empty if the
        response has no such detail.
        """
        self.lacks = lacks
        """The feature that the request needs and no replica knows, such as `RolloutPolicies`. Then no replica was sent
        the request.
        """

    def may_concern(self, field: str) -> bool:
        """Whether the cause may be this field of the request, such as `snapshot.state`, or a field below it."""
        return not self.violations or any(violation.field.startswith(field) for violation in self.violations)
