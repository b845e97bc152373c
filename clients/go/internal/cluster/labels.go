package cluster

import (
	"slices"

	"nodewise.dev/clients/go/convert"
)

// labels are the labels of nodes. Each is stored once, for as long as a node has it: most labels of a node are those of others, too.
type labels map[[2]string]*nodeLabel

// release drops the references of a removed node.
func (l labels) release(node *stored) {
	if node == nil || node.labels == nil {
		return
	}
	for _, label := range node.labels.all {
		label.users--
		if label.users == 0 {
			delete(l, [2]string{label.GetKey(), label.GetValue()})
		}
	}
}

// encodeNode encodes a node for the store.
func encodeNode(node *Node, kept labels, bucketCount uint32) *stored {
	all := make([]*nodeLabel, 0, len(node.Labels))
	for _, label := range node.Labels {
		of := [2]string{label.GetKey(), label.GetValue()}
		if kept[of] == nil {
			kept[of] = &nodeLabel{Label: label, encoded: encodeLabel(label)}
		}
		kept[of].users++
		all = append(all, kept[of])
	}
	before, after := splitNode(node.Node)
	return &stored{
		name:    node.GetName(),
		version: node.ResourceVersion,
		bucket:  convert.BucketOf(node.GetName(), bucketCount),
		own:     slices.Concat(before, after),
		labels:  &nodeLabels{all: all, at: len(before)},
	}
}
