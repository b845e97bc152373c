package planclient

import (
	"bytes"
	"crypto/sha256"
)

// weight is the weight of a replica for a workload. The replica with the smallest weight is asked first. So a replica that goes away moves
// only its own workloads, and a new replica takes an equal share of the workloads of every other one.
func weight(uid, address string) [sha256.Size]byte {
	return sha256.Sum256([]byte(uid + "\x00" + address))
}

func compareWeights(uid, a, b string) int {
	one, other := weight(uid, a), weight(uid, b)
	return bytes.Compare(one[:], other[:])
}
