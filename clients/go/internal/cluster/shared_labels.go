package cluster

import (
	"cmp"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/nodewisev1"
)

// sharedLabel is a label that several nodes of a bucket may have.
type sharedLabel struct {
	key string
	// isName is true if the value is the name of each node that has the label. The value is empty then.
	isName bool
	value  string
}

func sharedLabelOf(label *nodeLabel, node string) sharedLabel {
	if label.GetValue() == node {
		return sharedLabel{key: label.GetKey(), isName: true}
	}
	return sharedLabel{key: label.GetKey(), value: label.GetValue()}
}

// compare is the order of the labels in a bucket.
func (l sharedLabel) compare(other sharedLabel) int {
	names := 0
	if l.isName != other.isName {
		names = -1
		if l.isName {
			names = 1
		}
	}
	return cmp.Or(cmp.Compare(l.key, other.key), names, cmp.Compare(l.value, other.value))
}

// writeSharingLabels makes the canonical bytes of a bucket of nodes, which are ordered by name. Labels that at least two of them have are written
// once. If there is none, nodes do not share labels, and the bytes are those of the plain form.
func writeSharingLabels(nodes []*stored, keys *convert.KeySet) (data []byte, sharesLabels bool) {
	counts := map[sharedLabel]int{}
	for _, node := range nodes {
		for label := range node.sentLabels(keys) {
			counts[sharedLabelOf(label, node.name)]++
		}
	}
	maps.DeleteFunc(counts, func(label sharedLabel, nodes int) bool { return nodes < 2 || label.key == "" })
	shared := slices.SortedFunc(maps.Keys(counts), sharedLabel.compare)
	numbers := make(map[sharedLabel]uint64, len(shared))
	for i, label := range shared {
		numbers[label] = uint64(i + 1)
	}
	var node, packed []byte
	for _, member := range nodes {
		node, packed = append(node[:0], member.own[:member.labels.at]...), packed[:0]
		for label := range member.sentLabels(keys) {
			if number := numbers[sharedLabelOf(label, member.name)]; number > 0 {
				packed = protowire.AppendVarint(packed, number)
			} else {
				node = append(node, label.encoded...)
			}
		}
		node = append(node, member.own[member.labels.at:]...)
		if len(packed) > 0 {
			node = protowire.AppendTag(node, sharedLabelsField, protowire.BytesType)
			node = protowire.AppendBytes(node, packed)
		}
		data = protowire.AppendTag(data, memberField, protowire.BytesType)
		data = protowire.AppendBytes(data, node)
	}
	for _, label := range shared {
		data = protowire.AppendTag(data, sharedField, protowire.BytesType)
		data = protowire.AppendBytes(data, encode(&nodewisev1.SharedLabel{Key: label.key, Value: label.value, ValueIsNodeName: label.isName}))
	}
	return data, len(shared) > 0
}
