package plancheck

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"nodewise.dev/clients/go/nodewisev1"
)

const (
	// maxReason is the longest reason that an apiserver accepts, in bytes.
	maxReason = 128
	// maxMessage is the longest message that an apiserver accepts, in bytes.
	maxMessage = 1024
)

var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// checkEvents checks the Events that an action emits.
func checkEvents(action *nodewisev1.Action) error {
	events := slices.Clone(action.GetSuccessEvents())
	for _, event := range []*nodewisev1.EmitEvent{action.GetEmitEvent(), action.GetFailureEvent()} {
		if event != nil {
			events = append(events, event)
		}
	}
	for _, event := range events {
		if err := checkEvent(event); err != nil {
			return err
		}
	}
	return nil
}

// checkEvent checks an Event to be emitted. People trust it as a message of the controller.
func checkEvent(event *nodewisev1.EmitEvent) error {
	switch reason, size := event.GetReason(), len(event.GetMessage()); {
	case event.GetType() != corev1.EventTypeNormal && event.GetType() != corev1.EventTypeWarning:
		return errors.New("the type of its event is neither Normal nor Warning")
	case len(reason) > maxReason || !camelCase.MatchString(reason):
		return fmt.Errorf("the reason of its event is no word in UpperCamelCase of at most %d letters and digits", maxReason)
	case size > maxMessage:
		return fmt.Errorf("the message of its event has %d bytes, and %d are the most", size, maxMessage)
	default:
		return nil
	}
}
