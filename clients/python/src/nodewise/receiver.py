"""The replica that a request is built for: the buckets that it has, and whether it reads shared labels."""

from collections.abc import Callable

from .buckets import Digest


class Receiver:
    """The replica that a request is built for. By default one that has no bucket, and of which nothing is known."""

    def __init__(
        self, has: Callable[[Digest], bool] = lambda _: False, reads_shared_labels: bool | None = None
    ) -> None:
        """`reads_shared_labels` is None if that is not known."""
        self._has = has
        self._reads_shared_labels = reads_shared_labels
        self.must_be_asked = False
        """Whether the request depends on something that the replica was not asked yet."""

    def __call__(self, digest: Digest) -> bool:
        """Whether the replica is believed to have a bucket. Such a bucket may be sent by its digest alone."""
        return self._has(digest)

    @property
    def reads_shared_labels(self) -> bool:
        """Whether the replica reads `Bucket.data_with_shared_labels`. If that is not known yet, the client asks the
        replica after the request is built, and builds the request again if it does.
        """
        self.must_be_asked |= self._reads_shared_labels is None
        return bool(self._reads_shared_labels)
