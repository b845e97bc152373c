package planclient

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"nodewise.dev/clients/go/nodewisev1"
)

// pieces sends buckets in several calls, when one message with all buckets that a replica lacks would be too large.
//
// A replica keeps the inline buckets of a request also when it lacks other buckets of the same request. So a piece carries some of the
// missing buckets inline, and the others by digest alone. The replica answers with the buckets that it still lacks, and the next piece
// carries more of these.
type pieces struct {
	// maxBytes is the largest request that is sent in one message.
	maxBytes int
	// left is how many buckets the replica lacked after the last piece; -1 before the first.
	left int
}

func newPieces(maxBytes int) *pieces { return &pieces{maxBytes: maxBytes, left: -1} }

// cutPiece leaves as many buckets inline as fit into a piece, and at least one. It returns the piece and the digests of its inline buckets.
// If the request fits as it is, cutPiece returns the request itself and no digests. A bucket without a digest always stays inline.
func cutPiece[Q snapshotRequest](p *pieces, request Q) (piece Q, inline []Digest) {
	size := proto.Size(request)
	if size <= p.maxBytes {
		return request, nil
	}
	snapshot := request.GetSnapshot()
	rest := size
	for _, buckets := range [][]*nodewisev1.Bucket{snapshot.GetNodeBuckets(), snapshot.GetPodBuckets()} {
		for _, bucket := range buckets {
			if canWait(bucket) {
				rest -= len(inlineOf(bucket))
			}
		}
	}
	room, waiting := max(p.maxBytes-rest, 0), 0
	fill := func(buckets []*nodewisev1.Bucket) []*nodewisev1.Bucket {
		filled := make([]*nodewisev1.Bucket, len(buckets))
		for i, bucket := range buckets {
			switch length := len(inlineOf(bucket)); {
			case !canWait(bucket):
				filled[i] = bucket
			case length <= room || len(inline) == 0:
				room = max(room-length, 0)
				inline = append(inline, Digest(bucket.GetDigest()))
				filled[i] = bucket
			default:
				waiting++
				filled[i] = &nodewisev1.Bucket{Digest: bucket.GetDigest()}
			}
		}
		return filled
	}
	// The caller's request is not changed: the caller may build the next request from it.
	cut := shallow(snapshot)
	cut.NodeBuckets, cut.PodBuckets = fill(snapshot.GetNodeBuckets()), fill(snapshot.GetPodBuckets())
	if waiting == 0 {
		return request, nil
	}
	return withSnapshot(request, cut), inline
}

// canWait reports whether a bucket is inline and may be sent by digest alone.
func canWait(bucket *nodewisev1.Bucket) bool {
	return inlineOf(bucket) != nil && len(bucket.GetDigest()) == len(Digest{})
}

// inlineOf returns the bytes of a bucket in either form; nil if it goes by digest alone.
func inlineOf(bucket *nodewisev1.Bucket) []byte {
	if bucket.Data != nil {
		return bucket.Data
	}
	return bucket.DataWithSharedLabels
}

// withSnapshot copies a request, with another snapshot.
func withSnapshot[Q snapshotRequest](request Q, snapshot *nodewisev1.Snapshot) Q {
	copied := shallow(request)
	field := copied.ProtoReflect().Descriptor().Fields().ByName("snapshot")
	copied.ProtoReflect().Set(field, protoreflect.ValueOfMessage(snapshot.ProtoReflect()))
	return copied
}

// shallow copies a message. The copy shares the values of the fields.
func shallow[M proto.Message](message M) M {
	copied, _ := message.ProtoReflect().New().Interface().(M)
	message.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		copied.ProtoReflect().Set(field, value)
		return true
	})
	return copied
}

// areKept reports whether the replica keeps at least half of the buckets that a piece carries. If it does not, its cache is too small, or
// it keeps nothing of a request that lacks buckets. The arguments are how many buckets the piece carried, and how many the replica lacks
// after it.
func (p *pieces) areKept(sent, missing int) bool {
	before := p.left
	p.left = missing
	// After the first piece there is nothing to compare with: its buckets are not counted in what was missing before.
	return before < 0 || missing+(sent+1)/2 <= before
}

// explain adds to a failure what to change, when a request with all buckets is too large and pieces did not help.
func (p *pieces) explain(failure failure, request proto.Message) failure {
	if p.left >= 0 && failure.fault == faultSize {
		size := proto.Size(request)
		failure.reason += fmt.Sprintf(" (all buckets take %d bytes in one message; the replica was sent them in pieces of %d bytes, and "+
			"did not keep them: raise --bucket-cache-size of the service, or its --max-message-size to more than %d bytes)",
			size, p.maxBytes, size)
	}
	return failure
}
