package cluster

import (
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

// buckets are objects of one kind, divided into buckets and ordered by name in each.
type buckets struct {
	list []bucket
	len  int
	// keys are the labels that are sent. The cached digests are for these.
	keys *convert.KeySet
}

type bucket struct {
	members []*stored
	// version counts the changes. A cached digest is valid for one version.
	version uint64
	// cachedDigest is the digest of the bucket together with the second bucket that was sent with it.
	cachedDigest cachedDigest
}

// cachedDigest is the digest of two buckets of these versions. The second one may be nil.
type cachedDigest struct {
	valid                  bool
	version, secondVersion uint64
	second                 *bucket
	digest                 Digest
}

var emptyDigest = sha256.Sum256(nil)

func newBuckets(count uint32) *buckets {
	return &buckets{list: make([]bucket, count), keys: convert.NodeKeys()}
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
	bucket := &b.list[object.bucket]
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
	return nil
}

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
func render(first, second *buckets, keys *convert.KeySet, count uint32, known Known) []*nodewisev1.Bucket {
	first.setKeys(keys)
	second.setKeys(keys)
	sent := make([]*nodewisev1.Bucket, count)
	for index := range sent {
		one, other := occupied(first, index), occupied(second, index)
		if one == nil {
			one, other = other, nil
		}
		sent[index] = renderOne(one, other, keys, known)
	}
	return sent
}

func occupied(set *buckets, index int) *bucket {
	if set == nil || len(set.list[index].members) == 0 {
		return nil
	}
	return &set.list[index]
}

func renderOne(one, other *bucket, keys *convert.KeySet, known Known) *nodewisev1.Bucket {
	if one == nil {
		return sentAs(emptyDigest, []byte{}, known)
	}
	digest, isValid := one.digestWith(other)
	if isValid && known(digest) {
		return &nodewisev1.Bucket{Digest: digest[:]}
	}
	data := write(one, other, keys)
	if !isValid {
		digest = sha256.Sum256(data)
		one.cacheDigest(other, digest)
	}
	return sentAs(digest, data, known)
}

func sentAs(digest Digest, data []byte, known Known) *nodewisev1.Bucket {
	bucket := &nodewisev1.Bucket{Digest: digest[:]}
	if !known(digest) {
		bucket.Data = data
	}
	return bucket
}

// digestWith returns the cached digest of the bucket together with a second one, and whether the digest is valid.
func (b *bucket) digestWith(second *bucket) (Digest, bool) {
	cached := &b.cachedDigest
	isValid := cached.valid && cached.version == b.version && cached.second == second &&
		(second == nil || cached.secondVersion == second.version)
	return cached.digest, isValid
}

func (b *bucket) cacheDigest(second *bucket, digest Digest) {
	b.cachedDigest = cachedDigest{valid: true, version: b.version, second: second, digest: digest}
	if second != nil {
		b.cachedDigest.secondVersion = second.version
	}
}

// write makes the canonical bytes: the members of each bucket by name, and their shared metadata in the order of its first use.
func write(one, other *bucket, keys *convert.KeySet) []byte {
	members := one.members
	if other != nil {
		members = slices.Concat(one.members, other.members)
	}
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
