package planclient

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"nodewise.dev/clients/go/nodewisev1"
)

// pieces are buckets that are sent in several calls, because one message with all that a replica lacks would be too large.
//
// A replica keeps the buckets that came inline also when it lacks others of the same request. So a piece has some of the missing
// buckets inline, and the others by digest alone. The replica says what it still lacks, and the next piece brings more of it.
type pieces struct {
	// most is how many bytes a piece has.
	most int
	// left is how many buckets the replica lacked after the last piece; -1 before the first.
	left int
}

func newPieces(most int) *pieces { return &pieces{most: most, left: -1} }

// cut leaves as many buckets inline as fit into a piece, and at least one. It answers with the piece and the buckets that it
// brings, or with the request itself and none when that fits as it is. Only buckets that have a digest can wait.
func (p *pieces) cut(request *nodewisev1.PlanRequest) (piece *nodewisev1.PlanRequest, brought []Digest) {
	size := proto.Size(request)
	if size <= p.most {
		return request, nil
	}
	snapshot := request.GetSnapshot()
	besides := size
	for _, buckets := range [][]*nodewisev1.Bucket{snapshot.GetNodeBuckets(), snapshot.GetPodBuckets()} {
		for _, bucket := range buckets {
			if canWait(bucket) {
				besides -= len(bucket.GetData())
			}
		}
	}
	room, waiting := max(p.most-besides, 0), 0
	fill := func(buckets []*nodewisev1.Bucket) []*nodewisev1.Bucket {
		filled := make([]*nodewisev1.Bucket, len(buckets))
		for i, bucket := range buckets {
			switch length := len(bucket.GetData()); {
			case !canWait(bucket):
				filled[i] = bucket
			case length <= room || len(brought) == 0:
				room = max(room-length, 0)
				brought = append(brought, Digest(bucket.GetDigest()))
				filled[i] = bucket
			default:
				waiting++
				filled[i] = &nodewisev1.Bucket{Digest: bucket.GetDigest()}
			}
		}
		return filled
	}
	// The caller's request stays as it is: it may be what the next one is built from.
	cut := shallow(snapshot)
	cut.NodeBuckets, cut.PodBuckets = fill(snapshot.GetNodeBuckets()), fill(snapshot.GetPodBuckets())
	if waiting == 0 {
		return request, nil
	}
	piece = shallow(request)
	piece.Snapshot = cut
	return piece, brought
}

// canWait tells whether a bucket is inline and can be sent by its digest alone.
func canWait(bucket *nodewisev1.Bucket) bool {
	return bucket.Data != nil && len(bucket.GetDigest()) == len(Digest{})
}

// shallow is a message with the same fields, which it shares with the other.
func shallow[M proto.Message](message M) M {
	copied, _ := message.ProtoReflect().New().Interface().(M)
	message.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		copied.ProtoReflect().Set(field, value)
		return true
	})
	return copied
}

// areKept notes that the replica lacks so many buckets after a piece that brought so many. It answers whether the replica keeps at
// least half of what it is sent: else its cache is too small, or it keeps nothing of a request that lacks buckets.
func (p *pieces) areKept(brought, missing int) bool {
	before := p.left
	p.left = missing
	// The first piece says nothing: what it brought is not among what was missing then.
	return before < 0 || missing+(brought+1)/2 <= before
}

// explain says what to do when a request with all buckets is too large, and pieces did not help.
func (p *pieces) explain(failure failure, request *nodewisev1.PlanRequest) failure {
	if p.left >= 0 && failure.fault == faultSize {
		size := proto.Size(request)
		failure.reason += fmt.Sprintf(" (all buckets take %d bytes in one message; the replica was sent them in pieces of %d bytes, and "+
			"did not keep them: raise --bucket-cache-size of the service, or its --max-message-size to more than %d bytes)",
			size, p.most, size)
	}
	return failure
}
