package plancheck

import (
	"strings"
)

const (
	// letters are the letters of a hash in a derived name. They are those of Kubernetes' generated names.
	letters = "bcdfghjklmnpqrstvwxz2456789"
	// hashLength is the length of a hash in a derived name.
	hashLength = 10
	// maxName is the longest name of an object (a DNS-1123 subdomain).
	maxName = 253
	// maxPodName is the longest name of a pod that is also a valid host name (a DNS-1123 label).
	maxPodName = 63
)

// isPodName reports whether a pod of the workload may have a name. The planner's names are the workload's name, a dash, and ten letters of a
// hash. A plan must not take names of another form, such as agent-0, which other controllers give.
func isPodName(name, workload string) bool {
	prefix, isDerived := prefixOf(name)
	return isDerived && prefix == cutName(workload, maxPodName)
}

// isRevisionName reports whether a revision of the workload may have a name. Long names are cut, unless the deviation for that is disabled: then
// the apiserver refuses them.
func isRevisionName(name, workload string) bool {
	prefix, isDerived := prefixOf(name)
	return isDerived && (prefix == workload || prefix == cutName(workload, maxName))
}

// prefixOf returns the part of a derived name before the dash and the hash.
func prefixOf(name string) (prefix string, isDerived bool) {
	dash := strings.LastIndexByte(name, '-')
	if dash < 0 || len(name)-dash-1 != hashLength {
		return "", false
	}
	return name[:dash], strings.Trim(name[dash+1:], letters) == ""
}

// cutName cuts a workload's name, so that a name derived from it has at most limit characters. A cut name does not end with a dash or a dot.
func cutName(workload string, limit int) string {
	room := limit - hashLength - 1
	if len(workload) <= room {
		return workload
	}
	return strings.TrimRight(workload[:room], "-.")
}
