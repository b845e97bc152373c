package planclient

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nodewise.dev/clients/go/nodewisev1"
)

// sharedLabelsFeature is the name of the feature in GetCapabilitiesResponse.features.
const sharedLabelsFeature = "SharedLabels"

// Receiver is the replica that a request is built for. The zero value is a replica that has no bucket, and of which nothing is known.
type Receiver struct {
	has    func(Digest) bool
	shared *sharedLabels
}

// Has reports whether the replica is believed to have a bucket. Such a bucket may be sent by digest alone.
func (r Receiver) Has(digest Digest) bool {
	return r.has != nil && r.has(digest)
}

// ReadsSharedLabels reports whether the replica reads Bucket.data_with_shared_labels. If that is not known yet, the client asks the replica after
// the request is built, and builds the request again if it does.
func (r Receiver) ReadsSharedLabels() bool {
	if r.shared == nil {
		return false
	}
	r.shared.isWanted = true
	return r.shared.areRead
}

// sharedLabels is whether a replica reads shared labels. During an upgrade, two versions may answer behind one address. To the earlier one, a bucket
// with shared labels has no bytes, so it answers that it lacks the bucket.
type sharedLabels struct {
	// isKnown is whether the replica was asked.
	isKnown bool
	// areRead is whether the replica reads them.
	areRead bool
	// isWanted is whether a request would have them.
	isWanted bool
}

func (r *replica) sharedLabels() *sharedLabels {
	known, _ := r.capable()
	if known == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		return &sharedLabels{isKnown: r.readsSharedLabels, areRead: r.readsSharedLabels}
	}
	return &sharedLabels{isKnown: true, areRead: slices.Contains(known.features, sharedLabelsFeature)}
}

func (s *sharedLabels) mustBeAsked() bool { return s.isWanted && !s.isKnown }

// askSharedLabels asks a replica whether it reads shared labels. It does not if something before it refuses the question, as a gateway that
// lets only some methods pass.
func (c *call[Q, A]) askSharedLabels(ctx context.Context, replica *replica, shared *sharedLabels) *failure {
	known, failed := c.askCapabilities(ctx, replica)
	if failed == nil {
		shared.isKnown, shared.areRead = true, slices.Contains(known.features, sharedLabelsFeature)
		return nil
	}
	switch status.Code(failed.err) {
	case codes.Unimplemented, codes.PermissionDenied, codes.Unauthenticated:
		shared.isKnown = true
		return nil
	default:
		return failed
	}
}

// lacksSharedLabels reports whether a replica lacks a bucket whose bytes were in the request, with shared labels. A replica that reads them never
// does. If it does not say which buckets it lacks, it may be one of these.
func lacksSharedLabels(missing *nodewisev1.MissingBuckets, snapshot *nodewisev1.Snapshot) bool {
	for i, bucket := range snapshot.GetNodeBuckets() {
		if bucket.DataWithSharedLabels != nil && (missing == nil || slices.Contains(missing.GetNodeBucketIndices(), uint32(i))) {
			return true
		}
	}
	return false
}

// forgetCapabilities forgets what the replica knows: an earlier version answers, too.
func (r *replica) forgetCapabilities() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.capabilities, r.readsSharedLabels = nil, false
	r.incarnation++
}
