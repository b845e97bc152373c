package plancheck

import (
	"math"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"nodewise.dev/clients/go/internal/rawjson"
)

const (
	// defaultReplicas is the default of spec.replicas.
	defaultReplicas = 1
	// defaultSurge is the default of maxSurge, which the apiserver sets.
	defaultSurge = "25%"
)

// replicasIn returns spec.replicas of a workload, or its default.
func replicasIn(workload any) int64 {
	if replicas, is := integer(rawjson.At(workload, "spec", "replicas")); is {
		return replicas
	}
	return defaultReplicas
}

// maxSize returns how many pods the ReplicaSets of this Deployment may get: spec.replicas and the surge of the Deployment (P-29, P-31).
func maxSize(deployment any) int64 {
	replicas, strategy := replicasIn(deployment), rawjson.At(deployment, "spec", "strategy")
	if rawjson.At(strategy, "type") == string(appsv1.RecreateDeploymentStrategyType) {
		return replicas
	}
	surge := surgeOf(replicas, rawjson.At(strategy, "rollingUpdate", "maxSurge"))
	// No ReplicaSet can have more than this number of pods.
	return replicas + int64(min(max(surge, 0), math.MaxInt32))
}

// surgeOf returns the number of pods that maxSurge means; a percentage is rounded up.
func surgeOf(replicas int64, maxSurge any) float64 {
	if maxSurge == nil {
		maxSurge = defaultSurge
	}
	if written, isString := maxSurge.(string); isString {
		number, isPercentage := strings.CutSuffix(written, "%")
		percentage, err := strconv.ParseInt(number, 10, 64)
		if !isPercentage || err != nil {
			return 0
		}
		return math.Ceil(float64(replicas) * float64(percentage) / 100)
	}
	pods, _ := integer(maxSurge)
	return float64(pods)
}
