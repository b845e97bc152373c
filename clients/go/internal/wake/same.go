package wake

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/nodewisev1"
)

func sameLabels(a, b []*nodewisev1.Label) bool {
	return slices.EqualFunc(a, b, func(a, b *nodewisev1.Label) bool { return proto.Equal(a, b) })
}

func sameTaints(a, b []*nodewisev1.Taint) bool {
	return slices.EqualFunc(a, b, func(a, b *nodewisev1.Taint) bool { return proto.Equal(a, b) })
}
