package cluster

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/nodewisev1"
)

// Digest is the SHA-256 of a bucket's bytes.
type Digest = [sha256.Size]byte

// Known reports whether the receiver of a snapshot is believed to have a bucket.
type Known func(Digest) bool

const (
	// maxInBucket is up to how many objects buckets by name have on average. With more, the number of buckets is doubled.
	maxInBucket = 128
	// minInBucket is from how many objects on. With fewer, the number of buckets is halved. It is much less than half of the other limit, so that
	// the number of buckets stays the same while the number of objects goes up and down a little.
	minInBucket = 32
)

// buckets are objects of one kind, divided into buckets and ordered by name in each. They may be sent in another order.
type buckets struct {
	list []bucket
	len  int
	// byName is true if an object is in the bucket of its own name, and not in that of its node. There are many workloads with such pods, and most
	// have few, so the number of buckets depends on the number of objects. It is at most most.
	byName bool
	most   uint32
	// keys are the labels that are sent. The cached digests are for these.
	keys *convert.KeySet
}

type bucket struct {
	members []*stored
	// version counts the changes. A cached digest is valid for one version.
	version uint64
	// cachedDigests are the digests of the bucket together with the second bucket that was sent with it, by form.
	cachedDigests [forms]cachedDigest
}

// form is how a bucket is written.
type form int

const (
	// plain is the form that every version of the service reads. Members are ordered by name.
	plain form = iota
	// byNode is the same, with pods ordered by node and name.
	byNode
	// sharingLabels is the form of nodes that share labels.
	sharingLabels
	// forms is the number of forms.
	forms
)

// cachedDigest is the digest of two buckets of these versions. The second one may be nil.
type cachedDigest struct {
	valid                  bool
	version, secondVersion uint64
	second                 *bucket
	digest                 Digest
}

var emptyDigest = sha256.Sum256(nil)

// defaultMostBuckets is Limits.max_bucket_count of a service with default settings.
const defaultMostBuckets = 1_024

// newBuckets makes empty buckets: this many, or, by name, one that becomes up to four times as many. Without nodes, smaller buckets make smaller
// requests, and one workload may have many more pods than there are nodes.
func newBuckets(count uint32, byName bool) *buckets {
	made := &buckets{byName: byName, keys: convert.NodeKeys()}
	if byName {
		made.most = max(count, min(4*min(count, defaultMostBuckets), defaultMostBuckets))
		count = 1
	}
	made.list = make([]bucket, count)
	return made
}

// size is the number of objects. It is 0 for nil.
func (b *buckets) size() int {
	if b == nil {
		return 0
	}
	return b.len
}

// index is the index of an object's bucket.
func (b *buckets) index(object *stored) uint32 {
	if b.byName {
		return convert.BucketOf(object.name, uint32(len(b.list)))
	}
	return object.bucket
}

// resize changes the number of buckets by name if it does not fit the number of objects.
func (b *buckets) resize() {
	count := len(b.list)
	switch {
	case !b.byName:
	case b.len > count*maxInBucket && count < int(b.most):
		b.divideInto(min(2*count, int(b.most)))
	case b.len < count*minInBucket && count > 1:
		b.divideInto(count / 2)
	}
}

// divideInto changes the number of buckets by name.
func (b *buckets) divideInto(count int) {
	if b == nil || len(b.list) == count {
		return
	}
	old := b.list
	b.list = make([]bucket, count)
	for i := range old {
		for _, member := range old[i].members {
			bucket := &b.list[b.index(member)]
			// The members were in order in each bucket, but not across buckets.
			at, _ := bucket.find(member.name)
			bucket.members = slices.Insert(bucket.members, at, member)
			bucket.version++
		}
	}
}

// sameCount divides two sets of buckets by name, each of which may be nil, into the same number of buckets. It returns the number, at least 1.
func sameCount(one, other *buckets) uint32 {
	count := 1
	for _, set := range []*buckets{one, other} {
		if set != nil {
			count = max(count, len(set.list))
		}
	}
	one.divideInto(count)
	other.divideInto(count)
	return uint32(count)
}

func (b *bucket) find(name string) (int, bool) {
	return slices.BinarySearchFunc(b.members, name, func(member *stored, name string) int {
		return cmp.Compare(member.name, name)
	})
}

func (b *buckets) get(index uint32, name string) *stored {
	bucket := &b.list[index]
	if at, found := bucket.find(name); found {
		return bucket.members[at]
	}
	return nil
}

// put stores an object, and returns the object of the same name that was in the bucket before.
func (b *buckets) put(object *stored) *stored {
	bucket := &b.list[b.index(object)]
	at, found := bucket.find(object.name)
	if found {
		old := bucket.members[at]
		bucket.members[at] = object
		if !old.isSentAlike(object, b.keys) {
			bucket.version++
		}
		return old
	}
	bucket.members = slices.Insert(bucket.members, at, object)
	bucket.version++
	b.len++
	b.resize()
	return nil
}

// take removes the object of the same name and bucket.
func (b *buckets) take(object *stored) { b.remove(b.index(object), object.name) }

func (b *buckets) remove(index uint32, name string) *stored {
	bucket := &b.list[index]
	at, found := bucket.find(name)
	if !found {
		return nil
	}
	old := bucket.members[at]
	bucket.members = slices.Delete(bucket.members, at, at+1)
	bucket.version++
	b.len--
	b.resize()
	return old
}

// setKeys sets the labels that are sent.
func (b *buckets) setKeys(keys *convert.KeySet) {
	if b == nil || b.keys == keys {
		return
	}
	b.keys = keys
	for i := range b.list {
		b.list[i].version++
	}
}

func (b *buckets) all(yield func(*stored) bool) {
	if b == nil {
		return
	}
	for i := range b.list {
		for _, member := range b.list[i].members {
			if !yield(member) {
				return
			}
		}
	}
}

// render returns the buckets of two sets as they are sent, each bucket of the first together with that of the second, which may be nil. A bucket
// is inline, or by digest alone if it is known. An unchanged bucket is not hashed again, and its bytes are made only for a receiver that
// lacks it.
func render(first, second *buckets, keys *convert.KeySet, count uint32, form form, known Known) []*nodewisev1.Bucket {
	first.setKeys(keys)
	second.setKeys(keys)
	sent := make([]*nodewisev1.Bucket, count)
	for index := range sent {
		one, other := occupied(first, index), occupied(second, index)
		if one == nil {
			one, other = other, nil
		}
		sent[index] = renderOne(one, other, keys, form, known)
	}
	return sent
}

func occupied(set *buckets, index int) *bucket {
	if set == nil || len(set.list[index].members) == 0 {
		return nil
	}
	return &set.list[index]
}

func renderOne(one, other *bucket, keys *convert.KeySet, form form, known Known) *nodewisev1.Bucket {
	if one == nil {
		return sentAs(emptyDigest, []byte{}, false, known)
	}
	digest, isValid := one.digestWith(other, form)
	if isValid && known(digest) {
		return &nodewisev1.Bucket{Digest: digest[:]}
	}
	data, sharesLabels := write(one, other, keys, form)
	if !isValid {
		digest = sha256.Sum256(data)
		one.cacheDigest(other, form, digest)
	}
	return sentAs(digest, data, sharesLabels, known)
}

func sentAs(digest Digest, data []byte, sharesLabels bool, known Known) *nodewisev1.Bucket {
	bucket := &nodewisev1.Bucket{Digest: digest[:]}
	switch {
	case known(digest):
	case sharesLabels:
		bucket.DataWithSharedLabels = data
	default:
		bucket.Data = data
	}
	return bucket
}

// digestWith returns the cached digest of the bucket together with a second one, and whether the digest is valid.
func (b *bucket) digestWith(second *bucket, form form) (Digest, bool) {
	cached := &b.cachedDigests[form]
	isValid := cached.valid && cached.version == b.version && cached.second == second &&
		(second == nil || cached.secondVersion == second.version)
	return cached.digest, isValid
}

func (b *bucket) cacheDigest(second *bucket, form form, digest Digest) {
	b.cachedDigests[form] = cachedDigest{valid: true, version: b.version, second: second, digest: digest}
	if second != nil {
		b.cachedDigests[form].secondVersion = second.version
	}
}

// write makes the canonical bytes of the members of both buckets in one order, and returns whether nodes share labels in them.
func write(one, other *bucket, keys *convert.KeySet, form form) (data []byte, sharesLabels bool) {
	members := one.members
	if other != nil {
		members = slices.Concat(one.members, other.members)
	}
	switch {
	case form == sharingLabels:
		return writeSharingLabels(members, keys)
	case form == byNode:
		if other == nil {
			members = slices.Clone(members)
		}
		slices.SortFunc(members, func(a, b *stored) int {
			return cmp.Or(bytes.Compare(a.targetNode(), b.targetNode()), cmp.Compare(a.name, b.name))
		})
	case other != nil:
		slices.SortFunc(members, func(a, b *stored) int { return cmp.Compare(a.name, b.name) })
	}
	return writePlain(members, keys), false
}

// writePlain writes members in their order, and their shared metadata in the order of its first use.
func writePlain(members []*stored, keys *convert.KeySet) []byte {
	size := 0
	for _, member := range members {
		size += len(member.own) + 16
	}
	data := make([]byte, 0, size)
	var shared [][]byte
	numbers, sent := map[string]uint32{}, map[*part]uint32{}
	for _, member := range members {
		var number uint32
		if member.part != nil && len(member.part.encoded) > 0 {
			var isKnown bool
			if number, isKnown = sent[member.part]; !isKnown {
				// Metadata that is sent alike gets one number, even if it is stored more than once, so that equal buckets have equal bytes.
				encoded := member.part.sent(keys)
				if number = numbers[string(encoded)]; number == 0 && len(encoded) > 0 {
					shared = append(shared, encoded)
					number = uint32(len(shared))
					numbers[string(encoded)] = number
				}
				sent[member.part] = number
			}
		}
		data = member.appendTo(data, number, keys)
	}
	for _, encoded := range shared {
		data = protowire.AppendTag(data, sharedField, protowire.BytesType)
		data = protowire.AppendBytes(data, encoded)
	}
	return data
}
