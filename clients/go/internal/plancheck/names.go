package plancheck

import (
	"strings"
)

const (
	// letters are the letters of a hash in a derived name. They are those of Kubernetes' generated names.
	letters = "bcdfghjklmnpqrstvwxz2456789"
	// hashLength is the length of a hash in the names of revisions, and of pods that are for one node. In the name of an object of which the
	// workload has one for each template, a hash has at most this length.
	hashLength = 10
	// maxName is the longest name of an object (a DNS-1123 subdomain).
	maxName = 253
	// maxPodName is the longest name of a pod that is also a valid host name (a DNS-1123 label).
	maxPodName = 63
)

// isPodName reports whether a pod of the workload may have a name. The planner's names are the workload's name, a dash, and this many letters
// of a hash. A plan must not take names of another form, such as agent-0, which other controllers give.
func isPodName(name, workload string, hash int) bool {
	prefix, isDerived := prefixOf(name, hash)
	return isDerived && prefix == cutName(workload, maxPodName-hash-1)
}

// isRevisionName reports whether a revision of the workload may have a name. Long names are cut, unless the deviation for that is disabled: then
// the apiserver refuses them.
func isRevisionName(name, workload string) bool {
	prefix, isDerived := prefixOf(name, hashLength)
	return isDerived && (prefix == workload || prefix == cutName(workload, maxName-hashLength-1))
}

// templateHash returns the hash in the name of an object of which the workload has one for each template, and whether the name is derived from
// the workload's name. That is cut as upstream does it, also before a dash.
func templateHash(name, workload string) (hash string, isDerived bool) {
	dash := strings.LastIndexByte(name, '-')
	if dash < 0 {
		return "", false
	}
	prefix, hash := name[:dash], name[dash+1:]
	isHash := len(hash) >= 1 && len(hash) <= hashLength && strings.Trim(hash, letters) == ""
	return hash, isHash && prefix == workload[:min(len(workload), maxName-len(hash)-1)]
}

// prefixOf returns the part of a derived name before the dash and the hash.
func prefixOf(name string, hash int) (prefix string, isDerived bool) {
	dash := strings.LastIndexByte(name, '-')
	if dash < 0 || len(name)-dash-1 != hash {
		return "", false
	}
	return name[:dash], strings.Trim(name[dash+1:], letters) == ""
}

// cutName cuts a workload's name to at most room characters. A cut name does not end with a dash or a dot.
func cutName(workload string, room int) string {
	if len(workload) <= room {
		return workload
	}
	return strings.TrimRight(workload[:room], "-.")
}
