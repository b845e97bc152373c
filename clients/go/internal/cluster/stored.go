package cluster

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/nodewisev1"
)

// Numbers of the fields that are put together by hand: a bucket is the concatenation of its members, so that to send one costs
// a copy and not an encoding of everything in it.
const (
	memberField protowire.Number = 1  // NodeBucket.nodes, PodBucket.pods
	sharedField protowire.Number = 2  // PodBucket.shared_metadata
	numberField protowire.Number = 13 // Pod.shared_metadata, the last field of a Pod
)

// stored is a node or pod in the form in which it is sent.
type stored struct {
	name    string
	version string
	bucket  uint32
	// own are its encoded bytes without what it shares.
	own  []byte
	part *part
}

// part is what a pod shares with others: encoded SharedMetadata. Equal ones are kept once.
type part struct {
	encoded []byte
	// owner is the uid of the controller; empty for an orphan.
	owner string
	users int
}

var deterministic = proto.MarshalOptions{Deterministic: true}

func encode(message proto.Message) []byte {
	// What was made from objects of the API has only valid UTF-8, the one thing that could be wrong.
	encoded, err := deterministic.Marshal(message)
	if err != nil {
		panic("encoding a projection: " + err.Error())
	}
	return encoded
}

// owner is the uid of who controls the pod; empty for an orphan.
func (s *stored) owner() string {
	if s.part == nil {
		return ""
	}
	return s.part.owner
}

// isSame tells whether both are sent alike.
func (s *stored) isSame(other *stored) bool {
	return s.part == other.part && string(s.own) == string(other.own)
}

// decode reads the whole object back: the fields that pods share have the numbers that they have in a Pod.
func (s *stored) decode(into proto.Message) {
	options := proto.UnmarshalOptions{Merge: true}
	err := options.Unmarshal(s.own, into)
	if err == nil && s.part != nil {
		err = options.Unmarshal(s.part.encoded, into)
	}
	if err != nil {
		panic("decoding a projection of our own: " + err.Error())
	}
}

func (s *stored) pod(namespace string) *Pod {
	pod := &Pod{Namespace: namespace, ResourceVersion: s.version, Pod: new(nodewisev1.Pod)}
	s.decode(pod.Pod)
	return pod
}

func (s *stored) node() *Node {
	node := &Node{ResourceVersion: s.version, Node: new(nodewisev1.Node)}
	s.decode(node.Node)
	return node
}

// appendTo writes it as a member of its bucket, in which what it shares has this number; 0: nothing.
func (s *stored) appendTo(data []byte, number uint32) []byte {
	size := len(s.own)
	if number > 0 {
		size += protowire.SizeTag(numberField) + protowire.SizeVarint(uint64(number))
	}
	data = protowire.AppendTag(data, memberField, protowire.BytesType)
	data = protowire.AppendVarint(data, uint64(size))
	data = append(data, s.own...)
	if number > 0 {
		data = protowire.AppendTag(data, numberField, protowire.VarintType)
		data = protowire.AppendVarint(data, uint64(number))
	}
	return data
}
