package convert

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/protobuf/types/known/timestamppb"

	"nodewise.dev/clients/go/nodewisev1"
)

// Labels converts labels, ordered by key.
func Labels(labels map[string]string) []*nodewisev1.Label {
	if len(labels) == 0 {
		return nil
	}
	list := make([]*nodewisev1.Label, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, &nodewisev1.Label{Key: key, Value: labels[key]})
	}
	return list
}

// Controller converts the first owner reference with controller: true; nil for an orphan.
func Controller(owners []metav1.OwnerReference) *nodewisev1.ControllerReference {
	for _, owner := range owners {
		if owner.Controller != nil && *owner.Controller {
			return &nodewisev1.ControllerReference{Kind: text(owner.Kind), Name: text(owner.Name), Uid: text(string(owner.UID))}
		}
	}
	return nil
}

// text replaces invalid UTF-8, which the protocol does not allow. An apiserver does not check owner references for it.
func text(s string) string {
	return strings.ToValidUTF8(s, string(utf8.RuneError))
}

// The first and the last time that the protocol allows. An apiserver accepts any year with any time zone. If a time beyond were refused, a client
// that may write the status of one node or pod could stop the controller. The nearest allowed time means the same: long ago, or not yet.
var (
	firstMoment = time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)
	lastMoment  = time.Date(9999, time.December, 30, 0, 0, 0, 0, time.UTC)
)

// Timestamp converts a time to the nearest one that the protocol allows. The zero time becomes nil.
func Timestamp(at metav1.Time) *timestamppb.Timestamp {
	switch {
	case at.IsZero():
		return nil
	case at.Time.Before(firstMoment):
		return timestamppb.New(firstMoment)
	case at.Time.After(lastMoment):
		return timestamppb.New(lastMoment)
	default:
		return timestamppb.New(at.Time)
	}
}

func optionalTimestamp(at *metav1.Time) *timestamppb.Timestamp {
	if at == nil {
		return nil
	}
	return Timestamp(*at)
}
