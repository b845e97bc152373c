package plancheck

import (
	"strings"
)

const (
	// letters are those of Kubernetes' generated names, which the hash in a derived name is written in.
	letters = "bcdfghjklmnpqrstvwxz2456789"
	// hashLength is how many letters a hash has.
	hashLength = 10
	// maxName is the longest name of an object (a DNS-1123 subdomain).
	maxName = 253
	// maxPodName is the longest name of a pod that is a host name, too (a DNS-1123 label).
	maxPodName = 63
)

// isPodName tells whether a pod of this workload may have this name: the planner's are the workload's name, a dash, and ten letters of a
// hash. Other controllers give names of another shape, such as agent-0. A plan must not take those.
func isPodName(name, workload string) bool {
	prefix, isDerived := prefixOf(name)
	return isDerived && prefix == cutName(workload, maxPodName)
}

// isRevisionName tells whether a revision of this workload may have this name. Without the deviation that cuts them, names are too long
// for the apiserver.
func isRevisionName(name, workload string) bool {
	prefix, isDerived := prefixOf(name)
	return isDerived && (prefix == workload || prefix == cutName(workload, maxName))
}

// prefixOf is what stands before the dash and the letters.
func prefixOf(name string) (prefix string, isDerived bool) {
	dash := strings.LastIndexByte(name, '-')
	if dash < 0 || len(name)-dash-1 != hashLength {
		return "", false
	}
	return name[:dash], strings.Trim(name[dash+1:], letters) == ""
}

// cutName is a workload's name, cut so that the whole has at most so many characters. No dash and no dot stands before the dash then.
func cutName(workload string, limit int) string {
	room := limit - hashLength - 1
	if len(workload) <= room {
		return workload
	}
	return strings.TrimRight(workload[:room], "-.")
}
