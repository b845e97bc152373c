"""Errors of a reconciler that has ended."""


class EndedError(RuntimeError):
    """The reconciler has ended."""


class BrokenError(EndedError):
    """A watch or a worker ended by a defect. The reconciler stops: it must not plan from a cache that no watch
    updates.
    """
