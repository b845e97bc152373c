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

// Labels turns labels into those of the protocol, ordered by key.
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

// Controller is the one owner reference with controller: true; nil for an orphan.
func Controller(owners []metav1.OwnerReference) *nodewisev1.ControllerReference {
	for _, owner := range owners {
		if owner.Controller != nil && *owner.Controller {
			return &nodewisev1.ControllerReference{Kind: text(owner.Kind), Name: text(owner.Name), Uid: text(string(owner.UID))}
		}
	}
	return nil
}

// text is valid UTF-8, as the protocol's must be: an apiserver does not look at what an owner is called.
func text(s string) string {
	return strings.ToValidUTF8(s, string(utf8.RuneError))
}

// The first and the last moment that the protocol carries. An apiserver takes any year with any time zone. Whoever may write
// the status of one node or pod could stop a whole controller with a time that is refused; taken for the first or the
// last moment it says the same: long ago, or not yet.
var (
	firstMoment = time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)
	lastMoment  = time.Date(9999, time.December, 30, 0, 0, 0, 0, time.UTC)
)

// Timestamp turns a time into one that the protocol carries, the nearest if it is beyond. The zero time is none.
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
