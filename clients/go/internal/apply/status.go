package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
)

// updateStatus writes the workload's status (D-91). It writes the cached object with new values. After any error it reads the object from the
// apiserver and tries once more.
func (r *run) updateStatus(ctx context.Context, action *nodewisev1.Action, update *nodewisev1.UpdateStatus) *done {
	key, wrong := r.workloadKey()
	if wrong != nil {
		return failed(action, wrong)
	}
	if update.CollisionCount != nil {
		if err := r.writeCollisionCount(ctx, key, update); err != nil {
			return failed(action, err)
		}
		// The write of a collision count is no own write that the caches must show (D-109).
		return succeeded(action)
	}
	written, err := r.replaceStatus(ctx, key, r.object, update)
	if err != nil {
		live, _, unread := r.readWorkload(ctx)
		if unread != nil {
			return failed(action, unread)
		}
		if written, err = r.replaceStatus(ctx, key, live, update); err != nil {
			return failed(action, err)
		}
	}
	return recorded(action, r.kind.Resource, written)
}

// writeCollisionCount sets the collision count, unless it has changed since the snapshot.
func (r *run) writeCollisionCount(ctx context.Context, key write.Key, update *nodewisev1.UpdateStatus) *write.Error {
	live, _, err := r.readWorkload(ctx)
	if err != nil {
		return err
	}
	var object struct {
		Status struct {
			CollisionCount *int32 `json:"collisionCount"`
		} `json:"status"`
	}
	if err := json.Unmarshal(live, &object); err != nil {
		return write.Unclear("reading %s: %w", key, err)
	}
	if present := object.Status.CollisionCount; !equal(present, update.ExpectedCollisionCount) {
		return write.Unclear("%s has collision count %s, the plan was made for %s",
			key, show(present), show(update.ExpectedCollisionCount))
	}
	_, err = r.replaceStatus(ctx, key, live, update)
	return err
}

func (r *run) replaceStatus(
	ctx context.Context, key write.Key, object []byte, update *nodewisev1.UpdateStatus,
) (write.Written, *write.Error) {
	body, err := setStatus(object, update)
	if err != nil {
		return write.Written{}, write.Unclear("reading %s: %w", key, err)
	}
	written, err := r.writer.ReplaceStatus(ctx, key, body)
	if err != nil {
		return write.Written{}, write.AsError(err)
	}
	return written, nil
}

// setStatus replaces the fields of an object's status that update has. All other fields keep their values.
func setStatus(object []byte, update *nodewisev1.UpdateStatus) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	status := map[string]json.RawMessage{}
	if present := members["status"]; len(present) > 0 && present[0] == '{' {
		if err := json.Unmarshal(present, &status); err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
	}
	set := func(name string, value int64) {
		status[name] = fmt.Append(nil, value)
	}
	if next := update.GetStatus(); next != nil {
		set("currentNumberScheduled", int64(next.GetCurrentNumberScheduled()))
		set("numberMisscheduled", int64(next.GetNumberMisscheduled()))
		set("desiredNumberScheduled", int64(next.GetDesiredNumberScheduled()))
		set("numberReady", int64(next.GetNumberReady()))
		set("updatedNumberScheduled", int64(next.GetUpdatedNumberScheduled()))
		set("numberAvailable", int64(next.GetNumberAvailable()))
		set("numberUnavailable", int64(next.GetNumberUnavailable()))
		set("observedGeneration", next.GetObservedGeneration())
	}
	if update.CollisionCount != nil {
		set("collisionCount", int64(update.GetCollisionCount()))
	}
	written, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	members["status"] = written
	return json.Marshal(members)
}

func equal(a, b *int32) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func show(count *int32) string {
	if count == nil {
		return "none"
	}
	return strconv.Itoa(int(*count))
}
