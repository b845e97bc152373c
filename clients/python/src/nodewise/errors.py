"""Why a reconciler does nothing any more."""


class EndedError(RuntimeError):
    """The reconciler does nothing any more."""


class BrokenError(EndedError):
    """A watch or a worker has ended by a defect: a cache that is followed no more must not be planned from."""
