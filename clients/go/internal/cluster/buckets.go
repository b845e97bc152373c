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

// Known tells whether the receiver is believed to have a bucket.
type Known func(Digest) bool

// buckets are objects of one kind by bucket and, within it, by name.
type buckets struct {
	list []bucket
	len  int
	// keys are the labels that are sent: what is remembered holds for these.
	keys *convert.KeySet
}

type bucket struct {
	members []*stored
	// version counts the changes, so that what was computed of it is known to hold still.
	version uint64
	// remembered is the digest of the bucket together with what was sent beside it.
	remembered remembered
}

type remembered struct {
	valid           bool
	version, beside uint64
	besideBucket    *bucket
	digest          Digest
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
	if place, found := bucket.find(name); found {
		return bucket.members[place]
	}
	return nil
}

// put keeps an object; it answers with the one of that name that was in the bucket before.
func (b *buckets) put(object *stored) *stored {
	bucket := &b.list[object.bucket]
	place, found := bucket.find(object.name)
	if found {
		old := bucket.members[place]
		bucket.members[place] = object
		if !old.isSentAlike(object, b.keys) {
			bucket.version++
		}
		return old
	}
	bucket.members = slices.Insert(bucket.members, place, object)
	bucket.version++
	b.len++
	return nil
}

func (b *buckets) remove(index uint32, name string) *stored {
	bucket := &b.list[index]
	place, found := bucket.find(name)
	if !found {
		return nil
	}
	old := bucket.members[place]
	bucket.members = slices.Delete(bucket.members, place, place+1)
	bucket.version++
	b.len--
	return old
}

// send sends these labels from now on.
func (b *buckets) send(keys *convert.KeySet) {
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

// render makes the buckets of a set, each together with that of another set (which may be nil), as they are sent: inline, or by
// digest alone when it is known. What did not change is not hashed again, and put together only for who lacks it.
func render(first, second *buckets, keys *convert.KeySet, count uint32, known Known) []*nodewisev1.Bucket {
	first.send(keys)
	second.send(keys)
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
	digest, holds := one.recall(other)
	if holds && known(digest) {
		return &nodewisev1.Bucket{Digest: digest[:]}
	}
	data := write(one, other, keys)
	if !holds {
		digest = sha256.Sum256(data)
		one.remember(other, digest)
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

func (b *bucket) recall(beside *bucket) (Digest, bool) {
	r := &b.remembered
	holds := r.valid && r.version == b.version && r.besideBucket == beside && (beside == nil || r.beside == beside.version)
	return r.digest, holds
}

func (b *bucket) remember(beside *bucket, digest Digest) {
	b.remembered = remembered{valid: true, version: b.version, besideBucket: beside, digest: digest}
	if beside != nil {
		b.remembered.beside = beside.version
	}
}

// write makes the canonical bytes: the members of each by name, what they share in the order in which they first use it.
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
				// By what is sent of it, so that a bucket has the same bytes however its members came to be.
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
