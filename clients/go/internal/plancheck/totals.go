package plancheck

import (
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/rawjson"
	"nodewise.dev/clients/go/nodewisev1"
)

// sized is a new ReplicaSet of a Deployment, or one that gets another size.
type sized struct {
	action *nodewisev1.Action
	// uid is empty for a new ReplicaSet.
	uid  string
	size int64
}

// checkTotals limits the ReplicaSets of a Deployment together: no more pods than its size and surge, and no second ReplicaSet of its template.
// Otherwise a wrong service could add pods with every plan.
func (c *Checked) checkTotals(actions []*nodewisev1.Action) error {
	all := c.sizedIn(actions)
	if len(all) == 0 {
		return nil
	}
	workload, err := parse(c.asked.Workload.JSON, "the workload")
	if err != nil {
		return violationOf(nil, "%v", err)
	}
	owned, released := c.owned(actions), releasedIn(actions)
	for _, set := range all {
		if set.uid == "" {
			if err := c.checkIsFirst(set.action, workload, owned, released); err != nil {
				return err
			}
		}
	}
	return c.checkTotal(all, maxSize(workload), owned, released)
}

// sizedIn returns the new ReplicaSets, and those that get another size.
func (c *Checked) sizedIn(actions []*nodewisev1.Action) []sized {
	var all []sized
	for _, action := range actions {
		var uid string
		var written []byte
		switch write, err := writeOf(action, c.asked); {
		case err != nil:
			// That there is no error is checked before.
			continue
		case write == createObject:
			written = action.GetCreateObject().GetManifest()
		case write == patchObject:
			uid, written = action.GetPatchObject().GetObject().GetUid(), action.GetPatchObject().GetPatch()
		default:
			continue
		}
		if size, is := sizeIn(written); is {
			all = append(all, sized{action, uid, size})
		}
	}
	return all
}

// sizeIn returns the size that a manifest or a patch sets, if it sets one.
func sizeIn(written []byte) (size int64, is bool) {
	value, err := rawjson.Parse(written)
	if err != nil {
		return 0, false
	}
	return integer(rawjson.At(value, "spec", "replicas"))
}

// grows reports whether an action makes an object larger than it is.
func grows(action *nodewisev1.Action, known *cluster.Identity) bool {
	size, is := sizeIn(action.GetPatchObject().GetPatch())
	return is && size > known.Replicas
}

// releasedIn returns the objects that a plan releases.
func releasedIn(actions []*nodewisev1.Action) map[identity]bool {
	released := map[identity]bool{}
	for _, action := range actions {
		if patch := action.GetPatchObject(); patch.GetClaim() == nodewisev1.Claim_CLAIM_RELEASE {
			released[identityOf(patch.GetObject())] = true
		}
	}
	return released
}

// checkIsFirst checks that no ReplicaSet of the workload has the template of the one that a plan creates. One that the plan releases does not
// count. Nor does one of the same name: the apiserver refuses the create, and the service may not know the ReplicaSet, because not all of them
// fit into a request.
func (c *Checked) checkIsFirst(created *nodewisev1.Action, workload any, owned []*cluster.Workload, released map[identity]bool) error {
	template := withoutHash(rawjson.At(workload, "spec", "template"))
	for _, set := range owned {
		if _, has := hasTemplate(set, template); !has || released[identity{set.Key.Name, string(set.UID)}] || set.Key.Name == created.GetCreateObject().GetName() {
			continue
		}
		changed := c.caches.Changed(c.asked.controls().Resource, set.Key.Name)
		if err := c.leaveOut(created, changed, "%s of the workload has its template already", set.Key.Name); err != nil {
			return err
		}
	}
	return nil
}

// checkTotal checks that all ReplicaSets together get no more pods than the workload may have; and that none grows if they have more. One
// that the caches do not show may not grow ([Checked.Read]).
//
// A ReplicaSet that the plan makes smaller counts, although that write may fail: while a rollout is scaled, one ReplicaSet may grow by what another
// one loses. So they have at most twice as many, once: then none may grow.
func (c *Checked) checkTotal(all []sized, most int64, owned []*cluster.Workload, released map[identity]bool) error {
	isSized := map[string]bool{}
	for _, set := range all {
		isSized[set.uid] = true
	}
	sizes, before := map[string]int64{}, int64(0)
	for _, set := range owned {
		if uid := string(set.UID); isSized[uid] || !released[identity{set.Key.Name, uid}] {
			sizes[uid] = int64(set.Replicas)
			before += sizes[uid]
		}
	}
	growth := func(of sized) int64 {
		if size, isKnown := sizes[of.uid]; isKnown || of.uid == "" {
			return of.size - size
		}
		return 0
	}
	// A ReplicaSet may get more than one size; the largest counts.
	planned := map[string]int64{}
	for _, set := range all {
		by := growth(set)
		if largest, isPlanned := planned[set.uid]; !isPlanned || by > largest {
			planned[set.uid] = by
		}
	}
	after, grows := before, false
	for _, by := range planned {
		after += by
		grows = grows || by > 0
	}
	if !grows || max(before, after) <= most {
		return nil
	}
	changed := c.lastChange(owned)
	for _, set := range all {
		if growth(set) <= 0 {
			continue
		}
		if err := c.leaveOut(set.action, changed,
			"the ReplicaSets of the workload have %d pods, the plan makes that %d, and %d is the most", before, after, most); err != nil {
			return err
		}
	}
	return nil
}
