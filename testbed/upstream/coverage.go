package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"

	"golang.org/x/tools/cover"
)

// kubernetesModule is the module whose coverage is reported.
const kubernetesModule = "k8s.io/kubernetes"

// daemonSetPath lists the functions of upstream's packages that a sync of a DaemonSet can reach, by file. Functions for
// watches and queues are not included, because no case can reach them.
var daemonSetPath = map[string][]string{
	"pkg/controller/daemon/daemon_controller.go": {
		"enqueueDaemonSetAfter", "getDaemonPods", "getNodesToDaemonPods", "podsShouldBeOnNode", "updateDaemonSet",
		"manage", "syncNodes", "storeDaemonSetStatus", "updateDaemonSetStatus", "syncDaemonSet", "NodeShouldRunDaemonPod",
		"predicates", "NewPod", "podByCreationTimestampAndPhase.Len", "podByCreationTimestampAndPhase.Swap",
		"podByCreationTimestampAndPhase.Less", "failedPodsBackoffKey", "getUnscheduledPodsWithoutNode",
	},
	"pkg/controller/daemon/update.go": {
		"rollingUpdate", "findUpdatedPodsOnNode", "constructHistory", "cleanupHistory", "maxRevision", "dedupCurHistories",
		"controlledHistories", "Match", "getPatch", "snapshot", "updatedDesiredNodeCounts", "historiesByRevision.Len",
		"historiesByRevision.Swap", "historiesByRevision.Less",
	},
	"pkg/controller/daemon/util/daemonset_util.go": {
		"GetTemplateGeneration", "AddOrUpdateDaemonPodTolerations", "CreatePodTemplate", "AllowsSurge", "SurgeCount",
		"UnavailableCount", "IsPodUpdated", "ReplaceDaemonSetPodNodeNameNodeAffinity", "GetTargetNodeName",
	},
}

// replicaSetPath is the same for a ReplicaSet.
var replicaSetPath = map[string][]string{
	"pkg/controller/replicaset/replica_set.go": {
		"processNextWorkItem", "getReplicaSetsWithSameController", "manageReplicas", "syncReplicaSet", "claimPods",
		"slowStartBatch", "getIndirectlyRelatedPods", "getPodsToDelete", "reportSortingDeletionAgeRatioMetric",
		"getPodsRankedByRelatedPodsOnSameNode", "getPodKeys",
	},
	"pkg/controller/replicaset/replica_set_utils.go": {
		"updateReplicaSetStatus", "calculateStatus", "NewReplicaSetCondition", "GetCondition", "SetCondition",
		"RemoveCondition", "filterOutCondition",
	},
	"pkg/controller/controller_utils.go": {
		"getPodsLabelSet", "getPodsFinalizers", "getPodsAnnotationSet", "getPodsPrefix", "RealPodControl.CreatePods",
		"RealPodControl.CreatePodsWithGenerateName", "RealPodControl.PatchPod", "GetPodFromTemplate",
		"RealPodControl.createPods", "RealPodControl.DeletePod", "ActivePodsWithRanks.Len", "ActivePodsWithRanks.Swap",
		"ActivePodsWithRanks.Less", "afterOrZero", "logarithmicRankDiff", "podReadyTime", "maxContainerRestarts",
		"compareMaxContainerRestarts", "FilterClaimedPods", "FilterActivePods", "FilterTerminatingPods",
		"nextPodAvailabilityCheck", "findMinNextPodAvailabilitySimpleCheck", "FindMinNextPodAvailabilityCheck",
		"IsPodActive", "IsPodTerminating", "FilterPodsByOwner", "PodKey",
	},
	"pkg/controller/controller_ref_manager.go": {
		"CanAdopt", "ClaimObject", "NewPodControllerRefManager", "ClaimPods", "AdoptPod", "ReleasePod",
		"RecheckDeletionTimestamp", "ownerRefControllerPatch", "GenerateDeleteOwnerRefStrategicMergeBytes", "ownerReference",
	},
}

// deploymentPath is the same for a Deployment.
var deploymentPath = map[string][]string{
	"pkg/controller/deployment/deployment_controller.go": {
		"processNextWorkItem", "handleErr", "getReplicaSetsForDeployment", "getPodMapForDeployment", "syncDeployment",
		"enqueueRateLimited", "enqueueAfter",
	},
	"pkg/controller/deployment/sync.go": {
		"syncStatusOnly", "sync", "checkPausedConditions", "getAllReplicaSetsAndSyncRevision", "getNewReplicaSet", "scale",
		"scaleReplicaSet", "cleanupDeployment", "syncDeploymentStatus", "calculateStatus", "isScalingEvent",
		"generateReplicaSetName",
	},
	"pkg/controller/deployment/progress.go": {"syncRolloutStatus", "getReplicaFailures", "requeueStuckDeployment"},
	"pkg/controller/deployment/recreate.go": {
		"rolloutRecreate", "scaleDownOldReplicaSetsForRecreate", "oldPodsRunning", "scaleUpNewReplicaSetForRecreate",
	},
	"pkg/controller/deployment/rolling.go": {
		"rolloutRolling", "reconcileNewReplicaSet", "reconcileOldReplicaSets", "cleanupUnhealthyReplicas",
		"scaleDownOldReplicaSetsForRollingUpdate",
	},
	"pkg/controller/deployment/rollback.go": {
		"rollback", "rollbackToTemplate", "emitRollbackWarningEvent", "emitRollbackNormalEvent",
		"updateDeploymentAndClearRollbackTo", "getRollbackTo", "setRollbackTo",
	},
	"pkg/controller/deployment/util/deployment_util.go": {
		"NewDeploymentCondition", "GetDeploymentCondition", "SetDeploymentCondition", "RemoveDeploymentCondition",
		"filterOutCondition", "ReplicaSetToDeploymentCondition", "SetDeploymentRevision", "MaxRevision", "LastRevision",
		"Revision", "SetNewReplicaSetAnnotations", "skipCopyAnnotation", "copyDeploymentAnnotationsToReplicaSet",
		"SetDeploymentAnnotationsTo", "getSkippedAnnotations", "FindActiveOrLatest", "GetDesiredReplicasAnnotation",
		"getMaxReplicasAnnotation", "getNonNegativeInt32FromAnnotationVerbose", "getNonNegativeInt32FromAnnotation",
		"SetReplicasAnnotations", "ReplicasAnnotationsNeedUpdate", "MaxUnavailable", "MaxSurge", "GetReplicaSetProportion",
		"getReplicaSetFraction", "EqualIgnoreHash", "FindNewReplicaSet", "FindOldReplicaSets", "SetFromReplicaSetTemplate",
		"GetReplicaCountForReplicaSets", "GetActualReplicaCountForReplicaSets", "GetReadyReplicaCountForReplicaSets",
		"GetAvailableReplicaCountForReplicaSets", "GetTerminatingReplicaCountForReplicaSets", "IsRollingUpdate",
		"DeploymentComplete", "DeploymentProgressing", "DeploymentTimedOut", "NewRSNewReplicas", "IsSaturated",
		"ResolveFenceposts", "HasProgressDeadline", "HasRevisionHistoryLimit", "ReplicaSetsByRevision.Len",
		"ReplicaSetsByRevision.Swap", "ReplicaSetsByRevision.Less",
	},
	"pkg/controller/controller_ref_manager.go": {
		"CanAdopt", "ClaimObject", "NewReplicaSetControllerRefManager", "ClaimReplicaSets", "AdoptReplicaSet",
		"ReleaseReplicaSet", "RecheckDeletionTimestamp", "ownerRefControllerPatch",
		"GenerateDeleteOwnerRefStrategicMergeBytes", "ownerReference",
	},
	"pkg/controller/controller_utils.go": {
		"RealRSControl.PatchReplicaSet", "FilterActiveReplicaSets", "FilterReplicaSets", "FilterPodsByOwner", "ComputeHash",
		"ReplicaSetsByCreationTimestamp.Less", "ReplicaSetsBySizeOlder.Less", "ReplicaSetsBySizeNewer.Less",
	},
}

// coverageReport is the coverage of the sync path.
type coverageReport struct {
	Functions []functionCoverage `json:"functions"`
	Uncovered []uncoveredBlock   `json:"uncovered"`
}

type functionCoverage struct {
	Name       string `json:"name"`
	File       string `json:"file"`
	Covered    int    `json:"covered"`
	Statements int    `json:"statements"`
}

// uncoveredBlock is a block of statements that never ran.
type uncoveredBlock struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	EndLine  int    `json:"endLine"`
	Function string `json:"function"`
}

// coverage writes the coverage of the sync path of a kind, from the data in a GOCOVERDIR.
func coverage(dir, name string, out io.Writer) error {
	kind, err := (&spec{Kind: name}).kind()
	if err != nil {
		return err
	}
	profiles, err := readProfiles(dir)
	if err != nil {
		return err
	}
	source, err := kubernetesSource()
	if err != nil {
		return err
	}
	report := coverageReport{Functions: []functionCoverage{}, Uncovered: []uncoveredBlock{}}
	files := 0
	for _, profile := range profiles {
		file := strings.TrimPrefix(profile.FileName, kubernetesModule+"/")
		names, ok := kind.syncPath[file]
		if !ok {
			continue
		}
		files++
		extents, err := functionExtents(filepath.Join(source, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		for _, name := range names {
			extent, ok := extents[name]
			if !ok {
				return fmt.Errorf("upstream has changed: %s has no function %s", file, name)
			}
			report.add(path.Base(file), name, extent, profile.Blocks)
		}
	}
	if files != len(kind.syncPath) {
		return fmt.Errorf("%s tells about %d of the %d files of the sync path", dir, files, len(kind.syncPath))
	}
	encoder := json.NewEncoder(out)
	return encoder.Encode(report)
}

// add counts the blocks within a function.
func (r *coverageReport) add(file, name string, extent extent, blocks []cover.ProfileBlock) {
	function := functionCoverage{Name: name, File: file}
	for _, block := range blocks {
		if !extent.contains(block) {
			continue
		}
		function.Statements += block.NumStmt
		if block.Count > 0 {
			function.Covered += block.NumStmt
		} else if block.NumStmt > 0 {
			r.Uncovered = append(r.Uncovered, uncoveredBlock{
				File: file, Line: block.StartLine, EndLine: block.EndLine, Function: name,
			})
		}
	}
	r.Functions = append(r.Functions, function)
}

// readProfiles merges the coverage data of all processes in a folder.
func readProfiles(dir string) ([]*cover.Profile, error) {
	text, err := os.CreateTemp("", "upstream-coverage-*")
	if err != nil {
		return nil, fmt.Errorf("making a file for the profile: %w", err)
	}
	defer os.Remove(text.Name())
	if err := text.Close(); err != nil {
		return nil, fmt.Errorf("making a file for the profile: %w", err)
	}
	if _, err := goCommand("tool", "covdata", "textfmt", "-i="+dir, "-o="+text.Name()); err != nil {
		return nil, err
	}
	profiles, err := cover.ParseProfiles(text.Name())
	if err != nil {
		return nil, fmt.Errorf("reading the profile of %s: %w", dir, err)
	}
	return profiles, nil
}

// kubernetesSource returns the source folder of the Kubernetes version of this program.
func kubernetesSource() (string, error) {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "", errors.New("this program does not know what it was built from")
	}
	for _, module := range build.Deps {
		if module.Path != kubernetesModule {
			continue
		}
		text, err := goCommand("mod", "download", "-json", module.Path+"@"+module.Version)
		if err != nil {
			return "", err
		}
		var downloaded struct{ Dir string }
		if err := json.Unmarshal(text, &downloaded); err != nil {
			return "", fmt.Errorf("where %s is: %w", kubernetesModule, err)
		}
		return downloaded.Dir, nil
	}
	return "", fmt.Errorf("this program was built without %s", kubernetesModule)
}

func goCommand(args ...string) ([]byte, error) {
	command := exec.CommandContext(context.Background(), "go", args...)
	var output, complaints bytes.Buffer
	command.Stdout, command.Stderr = &output, &complaints
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, complaints.String())
	}
	return output.Bytes(), nil
}

// extent is the position of a function's body.
type extent struct{ start, end token.Position }

func (e extent) contains(block cover.ProfileBlock) bool {
	before := func(line, column, otherLine, otherColumn int) bool {
		return line < otherLine || line == otherLine && column <= otherColumn
	}
	return before(e.start.Line, e.start.Column, block.StartLine, block.StartCol) &&
		before(block.EndLine, block.EndCol, e.end.Line, e.end.Column)
}

// functionExtents finds the functions in a source file. The key of a method is its name, or `Type.Name` if its receiver
// is not the controller.
func functionExtents(file string) (map[string]extent, error) {
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("reading upstream's source: %w", err)
	}
	extents := map[string]extent{}
	for _, declared := range parsed.Decls {
		function, ok := declared.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := function.Name.Name
		if function.Recv != nil {
			if receiver, ok := function.Recv.List[0].Type.(*ast.Ident); ok {
				name = receiver.Name + "." + name
			}
		}
		extents[name] = extent{positions.Position(function.Pos()), positions.Position(function.End())}
	}
	return extents, nil
}
