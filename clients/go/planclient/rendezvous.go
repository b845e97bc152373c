package planclient

import (
	"bytes"
	"crypto/sha256"
)

// weight is that of a replica for a workload. The one with the least is asked first, so that one that goes moves only its own
// workloads, and one that comes takes a fair share of everybody's.
func weight(uid, address string) [sha256.Size]byte {
	return sha256.Sum256([]byte(uid + "\x00" + address))
}

func compareWeights(uid, a, b string) int {
	one, other := weight(uid, a), weight(uid, b)
	return bytes.Compare(one[:], other[:])
}
