package convert

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"hash/fnv"
	"slices"

	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/nodewisev1"
)

// BucketOf returns the index of the bucket of a node's name, or of the name of a pod's target node. It is the 64-bit FNV-1a hash of the name's
// bytes modulo count, which must not be 0.
func BucketOf(nodeName string, count uint32) uint32 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(nodeName)) // It never fails.
	return uint32(hash.Sum64() % uint64(count))
}

// deterministic encoding makes equal bytes, and so equal digests, for equal messages.
var deterministic = proto.MarshalOptions{Deterministic: true}

var errNoBucket = errors.New("count is 0; a snapshot has at least 1 bucket")

// NodeBuckets divides nodes into count buckets, at least 1. Each has its canonical bytes inline, and their digest.
func NodeBuckets(nodes []*nodewisev1.Node, count uint32) ([]*nodewisev1.Bucket, error) {
	if count == 0 {
		return nil, errNoBucket
	}
	members := make([][]*nodewisev1.Node, count)
	for _, node := range nodes {
		index := BucketOf(node.GetName(), count)
		members[index] = append(members[index], node)
	}
	return buckets(members, NodeBucketBytes)
}

// PodBuckets divides pods into count buckets, at least 1, by their target nodes. Each has its canonical bytes inline, and their digest.
func PodBuckets(pods []*nodewisev1.Pod, count uint32) ([]*nodewisev1.Bucket, error) {
	if count == 0 {
		return nil, errNoBucket
	}
	members := make([][]*nodewisev1.Pod, count)
	for _, pod := range pods {
		index := BucketOf(TargetNode(pod), count)
		members[index] = append(members[index], pod)
	}
	return buckets(members, PodBucketBytes)
}

func buckets[M any](members [][]M, write func([]M) ([]byte, error)) ([]*nodewisev1.Bucket, error) {
	list := make([]*nodewisev1.Bucket, 0, len(members))
	for _, members := range members {
		data, err := write(members)
		if err != nil {
			return nil, err
		}
		digest := sha256.Sum256(data)
		list = append(list, &nodewisev1.Bucket{Data: data, Digest: digest[:]})
	}
	return list, nil
}

// NodeBucketBytes returns the canonical bytes of a bucket of nodes in the form that every version of the service reads: nodes are ordered by name,
// and labels by key. They are the same in every client, for any order of the arguments.
func NodeBucketBytes(nodes []*nodewisev1.Node) ([]byte, error) {
	bucket := &nodewisev1.NodeBucket{Nodes: slices.Clone(nodes)}
	for i, node := range bucket.Nodes {
		if !sorted(node.GetLabels()) {
			bucket.Nodes[i] = proto.CloneOf(node)
			sortLabels(bucket.Nodes[i].Labels)
		}
	}
	slices.SortFunc(bucket.Nodes, func(a, b *nodewisev1.Node) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return encode(bucket)
}

// PodBucketBytes returns the canonical bytes of a bucket of pods: pods are ordered by target node and then by name, and labels by key. Metadata that
// pods share is written once, in the order of its first use.
func PodBucketBytes(pods []*nodewisev1.Pod) ([]byte, error) {
	ordered := slices.Clone(pods)
	slices.SortFunc(ordered, func(a, b *nodewisev1.Pod) int {
		return cmp.Or(cmp.Compare(TargetNode(a), TargetNode(b)), cmp.Compare(a.GetName(), b.GetName()))
	})
	bucket := &nodewisev1.PodBucket{Pods: make([]*nodewisev1.Pod, 0, len(pods))}
	numbers := map[string]uint32{}
	for _, pod := range ordered {
		pod = proto.CloneOf(pod)
		sortLabels(pod.Labels)
		shared := &nodewisev1.SharedMetadata{Labels: pod.Labels, Controller: pod.Controller}
		key, err := encode(shared)
		if err != nil {
			return nil, err
		}
		bucket.Pods = append(bucket.Pods, pod)
		if len(key) == 0 {
			continue
		}
		if numbers[string(key)] == 0 {
			bucket.SharedMetadata = append(bucket.SharedMetadata, shared)
			numbers[string(key)] = uint32(len(bucket.SharedMetadata))
		}
		pod.Labels, pod.Controller, pod.SharedMetadata = nil, nil, numbers[string(key)]
	}
	return encode(bucket)
}

func encode(message proto.Message) ([]byte, error) {
	// Never nil: an empty bucket has empty data, and nil would mean that the data is absent.
	return deterministic.MarshalAppend([]byte{}, message)
}

func sorted(labels []*nodewisev1.Label) bool {
	return slices.IsSortedFunc(labels, compareLabels)
}

func sortLabels(labels []*nodewisev1.Label) {
	slices.SortFunc(labels, compareLabels)
}

func compareLabels(a, b *nodewisev1.Label) int {
	return cmp.Compare(a.GetKey(), b.GetKey())
}
