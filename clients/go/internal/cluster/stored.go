package cluster

import (
	"bytes"
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/nodewisev1"
)

// Numbers of the fields that are encoded by hand. A bucket is made by concatenating its encoded members, which is faster than encoding all of
// them again.
const (
	memberField       protowire.Number = 1  // NodeBucket.nodes, PodBucket.pods
	labelsField       protowire.Number = 3  // Node.labels
	sharedField       protowire.Number = 2  // PodBucket.shared_metadata, NodeBucket.shared_labels
	nodeField         protowire.Number = 5  // Pod.node_name
	targetField       protowire.Number = 6  // Pod.target_node_name
	sharedLabelsField protowire.Number = 9  // Node.shared_labels, which is written last
	numberField       protowire.Number = 13 // Pod.shared_metadata, which is written last
)

// stored is a node or pod, encoded as it is sent.
type stored struct {
	name    string
	version string
	bucket  uint32
	// own are the encoded fields that the object does not share with others.
	own []byte
	// part is the shared metadata of a pod; nil for a node.
	part *part
	// labels are the labels of a node; nil for a pod.
	labels *nodeLabels
	// changed is the number of the last change of a pod in the caches.
	changed uint64
}

// nodeLabels are all labels of a node, ordered by key.
type nodeLabels struct {
	all []*nodeLabel
	// at is the offset in the node's own fields at which the labels are inserted.
	at int
}

// nodeLabel is a label of nodes. Equal labels are stored once.
type nodeLabel struct {
	*nodewisev1.Label
	// encoded is the label as a field of its node.
	encoded []byte
	users   int
}

// part is the encoded SharedMetadata of pods. Equal ones are stored once.
type part struct {
	encoded []byte
	// owner is the controller; empty for an orphan.
	owner owner
	users int
}

var deterministic = proto.MarshalOptions{Deterministic: true}

func encode(message proto.Message) []byte {
	// Encoding fails only for invalid UTF-8, which a projection does not have.
	encoded, err := deterministic.Marshal(message)
	if err != nil {
		panic("encoding a projection: " + err.Error())
	}
	return encoded
}

// owner is the uid of the pod's controller; empty for an orphan.
func (s *stored) owner() string {
	if s.part == nil {
		return ""
	}
	return s.part.owner.uid
}

// isSentAlike reports whether both objects are sent with the same bytes.
func (s *stored) isSentAlike(other *stored, keys *convert.KeySet) bool {
	if !bytes.Equal(s.sent(keys), other.sent(keys)) {
		return false
	}
	return s.part == other.part || s.part != nil && other.part != nil && bytes.Equal(s.part.sent(keys), other.part.sent(keys))
}

// sent returns the encoded own fields that are sent.
func (s *stored) sent(keys *convert.KeySet) []byte {
	if s.labels == nil {
		return s.own
	}
	sent := make([]byte, 0, len(s.own)+64)
	sent = append(sent, s.own[:s.labels.at]...)
	for label := range s.sentLabels(keys) {
		sent = append(sent, label.encoded...)
	}
	return append(sent, s.own[s.labels.at:]...)
}

// sentLabels yields the labels of a node that are sent, by key.
func (s *stored) sentLabels(keys *convert.KeySet) iter.Seq[*nodeLabel] {
	return func(yield func(*nodeLabel) bool) {
		count := 0
		for _, label := range s.labels.all {
			if count == convert.MaxLabels {
				return
			}
			if keys.Labels.Has(label.GetKey()) {
				count++
				if !yield(label) {
					return
				}
			}
		}
	}
}

// cut returns how many labels that a decision could read are not sent because there are too many.
func (s *stored) cut(keys *convert.KeySet) int {
	switch {
	case s.part != nil && len(s.part.encoded)/4 > convert.MaxLabels: // A label is never shorter.
		_, cut := convert.ReduceLabels(s.part.metadata().GetLabels(), keys)
		return cut
	case s.labels != nil && len(s.labels.all) > convert.MaxLabels:
		return convert.ReduceNode(s.node().Node, keys)
	default:
		return 0
	}
}

// metadata decodes the shared metadata.
func (p *part) metadata() *nodewisev1.SharedMetadata {
	metadata := &nodewisev1.SharedMetadata{}
	if err := proto.Unmarshal(p.encoded, metadata); err != nil {
		panic("decoding a projection of our own: " + err.Error())
	}
	return metadata
}

// sent returns the encoded fields that are sent.
func (p *part) sent(keys *convert.KeySet) []byte {
	metadata := p.metadata()
	reduced, _ := convert.ReduceLabels(metadata.GetLabels(), keys)
	if len(reduced) == len(metadata.GetLabels()) {
		return p.encoded
	}
	metadata.Labels = reduced
	return encode(metadata)
}

// decode decodes the whole object. The fields of SharedMetadata have the same numbers as in a Pod.
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

// targetNode returns the name of the node that a pod is on, or else of the node that it is meant for. It does not decode the other fields.
func (s *stored) targetNode() []byte {
	var target []byte
	for fields := s.own; len(fields) > 0; {
		number, kind, size := protowire.ConsumeTag(fields)
		fields = fields[size:]
		if number == nodeField || number == targetField {
			name, _ := protowire.ConsumeBytes(fields)
			if number == nodeField && len(name) > 0 {
				return name
			}
			target = name
		}
		fields = fields[protowire.ConsumeFieldValue(number, kind, fields):]
	}
	return target
}

// node decodes a node with all of its labels.
func (s *stored) node() *Node {
	node := &Node{ResourceVersion: s.version, Node: new(nodewisev1.Node)}
	s.decode(node.Node)
	for _, label := range s.labels.all {
		node.Labels = append(node.Labels, label.Label)
	}
	return node
}

// sentNode decodes a node with the labels that are sent.
func (s *stored) sentNode(keys *convert.KeySet) *Node {
	node := s.node()
	convert.ReduceNode(node.Node, keys)
	return node
}

func encodeLabel(label *nodewisev1.Label) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, labelsField, protowire.BytesType), encode(label))
}

// splitNode encodes the fields of a node before and after its labels.
func splitNode(node *nodewisev1.Node) (before, after []byte) {
	before = encode(&nodewisev1.Node{Name: node.GetName(), Uid: node.GetUid()})
	rest := proto.CloneOf(node)
	rest.Name, rest.Uid, rest.Labels = "", "", nil
	return before, encode(rest)
}

// appendTo appends the object as a member of its bucket. The argument number is the number of its shared metadata in the bucket; 0 for none.
func (s *stored) appendTo(data []byte, number uint32, keys *convert.KeySet) []byte {
	own := s.sent(keys)
	size := len(own)
	if number > 0 {
		size += protowire.SizeTag(numberField) + protowire.SizeVarint(uint64(number))
	}
	data = protowire.AppendTag(data, memberField, protowire.BytesType)
	data = protowire.AppendVarint(data, uint64(size))
	data = append(data, own...)
	if number > 0 {
		data = protowire.AppendTag(data, numberField, protowire.VarintType)
		data = protowire.AppendVarint(data, uint64(number))
	}
	return data
}
