"""Whether a replica reads shared labels.

During an upgrade two versions of the service may answer behind one address. To the earlier one a bucket with shared
labels has no bytes, so it answers that it lacks the bucket.
"""

from .. import v1
from .capabilities import Capabilities

SHARED_LABELS = "SharedLabels"
"""The name of the feature in `GetCapabilitiesResponse.features`."""


def reads_shared_labels(known: Capabilities | None) -> bool | None:
    """Whether a replica reads shared labels; None if it was not asked."""
    return None if known is None else SHARED_LABELS in known.features


def lacks_shared_labels(missing: v1.MissingBuckets | None, snapshot: v1.Snapshot) -> bool:
    """Whether a replica lacks a bucket whose bytes were in the request, with shared labels. A replica that reads them
    never does. If it does not say which buckets it lacks, it may be one of these.
    """
    buckets = enumerate(snapshot.node_buckets)
    sent = {index for index, bucket in buckets if bucket.HasField("data_with_shared_labels")}
    return bool(sent if missing is None else sent.intersection(missing.node_bucket_indices))
