package plancheck

import (
	appsv1 "k8s.io/api/apps/v1"

	"nodewise.dev/clients/go/internal/rawjson"
	"nodewise.dev/clients/go/nodewisev1"
)

// checkHash checks the hash label of the pods that the plan creates, which says to which revision they belong. It must be the hash of a revision
// that the caches show, that was read from the apiserver, or that the plan creates or labels.
func (c *Checked) checkHash(plan *nodewisev1.Plan, actions []*nodewisev1.Action) error {
	var creates []*nodewisev1.Action
	for action := range created(actions) {
		creates = append(creates, action)
	}
	hash := hashAt(plan.GetPodManifest())
	if len(creates) == 0 || c.hasHash(actions, hash) {
		return nil
	}
	for _, action := range creates {
		// The revision may have lost its label or its owner since the snapshot, or may be gone.
		err := c.leaveOut(action, c.caches.RevisionsChanged(), "it creates pods with the hash %q, which no revision of the workload has", hash)
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Checked) hasHash(actions []*nodewisev1.Action, hash string) bool {
	// Pods of a revision without the label have the label of the template, if it has one.
	mayBeEmpty := hash == "" || hash == hashAt(c.asked.Workload.JSON, "spec", "template")
	for _, revision := range c.asked.Live {
		if other := revision.Hash(); other == hash || other == "" && mayBeEmpty {
			return true
		}
	}
	for _, action := range actions {
		var written []byte
		switch kind := action.GetKind().(type) {
		case *nodewisev1.Action_CreateRevision:
			written = kind.CreateRevision.GetManifest()
		case *nodewisev1.Action_UpdateRevision:
			written = kind.UpdateRevision.GetPatch()
		default:
		}
		if written != nil && hash != "" && !c.isLeftOut(action) && hashAt(written) == hash {
			return true
		}
	}
	return c.caches.HasHash(hash) || mayBeEmpty && c.caches.HasHash("")
}

// hashAt returns the hash label of the object at a path in JSON; empty if there is none.
func hashAt(text []byte, path ...string) string {
	parsed, err := rawjson.Parse(text)
	if err != nil {
		return ""
	}
	hash, _ := rawjson.At(rawjson.At(parsed, path...), "metadata", "labels", appsv1.ControllerRevisionHashLabelKey).(string)
	return hash
}
