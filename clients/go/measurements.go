package nodewise

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"nodewise.dev/clients/go/analysis"
	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/plancheck"
	"nodewise.dev/clients/go/internal/rawjson"
	"nodewise.dev/clients/go/nodewisev1"
)

// maxMeasurements is how many measurements of a workload are under way or have results that are held: as many as a snapshot may have.
const maxMeasurements = 1000

// maxResultBytes is how many bytes the results of a workload have that are held. A service that asks for measurements and never counts them must not
// fill the memory. Of one that counts them, each plan drops what is held.
const maxResultBytes = 4 << 20

// WithMeasurer makes the measurements that the checks of RolloutPolicies need, see package analysis. If not set, no measurement can be made, and a
// policy with a check is not accepted, because no host may be called.
func WithMeasurer(measurer analysis.Measurer) Option {
	return func(c *config) {
		if isNil(measurer) {
			c.mistakes = append(c.mistakes, errors.New("WithMeasurer was given nil: leave the option out for none"))
			return
		}
		c.measurer = measurer
	}
}

var errNoMeasurer = errors.New("this executor makes no measurements")

// noMeasurer calls nobody.
type noMeasurer struct{}

func (noMeasurer) Measure(context.Context, *analysis.Request) (*nodewisev1.Measurement, error) {
	return nil, errNoMeasurer
}

func (noMeasurer) Hosts() []string { return nil }

// measurements are the measurements of one kind of workload: those that are under way, and the results that no plan has counted yet. A plan asks for
// a measurement and does not wait for it. When the measurement has ended, its workload is enqueued. Everything is in memory: after a restart, plans
// ask again.
type measurements struct {
	measurer analysis.Measurer
	hosts    []string
	// ended is called when a measurement of a workload has ended.
	ended func(types.NamespacedName)

	mu sync.Mutex
	// base ends the measurements when the controller stops: they outlive the reconciles that start them.
	base       context.Context
	byWorkload map[types.NamespacedName]*measured
}

// measured are the measurements of the workload of this uid.
type measured struct {
	uid     types.UID
	entries map[measurementID]*measurement
}

// measurementID is a MeasurementId, in an order in which results are sent.
type measurementID struct {
	policy, check, stage, revision string
	number                         uint32
}

// measurement is a measurement that is under way while result is nil.
type measurement struct {
	cancel context.CancelFunc
	result *nodewisev1.Measurement
}

func newMeasurements(measurer analysis.Measurer, ended func(types.NamespacedName)) *measurements {
	return &measurements{
		measurer: measurer, hosts: measurer.Hosts(), ended: ended, base: context.Background(), byWorkload: map[types.NamespacedName]*measured{},
	}
}

// endWith ends all measurements that start from now on when the context ends.
func (m *measurements) endWith(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.base = ctx
}

func idOf(id *nodewisev1.MeasurementId) measurementID {
	return measurementID{id.GetPolicyUid(), id.GetCheck(), id.GetStage(), id.GetRevisionHash(), id.GetNumber()}
}

// start starts a measurement, and returns at once. It ignores a request for one that is under way or whose result is held.
func (m *measurements) start(workload *cluster.Workload, request *analysis.Request) {
	id := idOf(request.GetId())
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.byWorkload[workload.Key]
	if of == nil || of.uid != workload.UID {
		of.end()
		of = &measured{uid: workload.UID, entries: map[measurementID]*measurement{}}
		m.byWorkload[workload.Key] = of
	}
	if of.entries[id] != nil || len(of.entries) >= maxMeasurements {
		return
	}
	ctx, cancel := context.WithCancel(m.base)
	made := &measurement{cancel: cancel}
	of.entries[id] = made
	go func() {
		defer cancel()
		result, err := m.measurer.Measure(ctx, request)
		if ctx.Err() == nil && m.keep(made, resultOf(result, err), request.GetId()) {
			m.ended(workload.Key)
		}
	}()
}

// resultOf is the result of a measurement that a snapshot may have.
func resultOf(result *nodewisev1.Measurement, err error) *nodewisev1.Measurement {
	if err == nil && result.GetResult() == nil {
		err = errors.New("the measurer returned no result")
	}
	if err == nil {
		err = analysis.CheckValue(result.GetValue())
	}
	if err != nil {
		return &nodewisev1.Measurement{Result: &nodewisev1.Measurement_Error{Error: brief.Text(err.Error())}}
	}
	return proto.CloneOf(result)
}

// keep keeps the result of a measurement, unless that was forgotten meanwhile.
func (m *measurements) keep(of *measurement, result *nodewisev1.Measurement, id *nodewisev1.MeasurementId) bool {
	result.Id, result.Time = proto.CloneOf(id), timestamppb.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, measured := range m.byWorkload {
		if measured.entries[idOf(id)] == of {
			of.result = measured.bounded(result)
			return true
		}
	}
	return false
}

// bounded returns a result, or an error in its place if too much is held already. The error counts as one of the check, so that the rollout waits.
func (m *measured) bounded(result *nodewisev1.Measurement) *nodewisev1.Measurement {
	bytes, held := proto.Size(result), 0
	for _, entry := range m.entries {
		held += proto.Size(entry.result)
	}
	if held+bytes > maxResultBytes {
		result.Result = &nodewisev1.Measurement_Error{Error: fmt.Sprintf(
			"the result has %d bytes, and %d bytes of results wait to be counted; at most %d are held for a workload", bytes, held, maxResultBytes)}
	}
	return result
}

func (m *measured) end() {
	if m == nil {
		return
	}
	for _, entry := range m.entries {
		entry.cancel()
	}
}

// results are the results for the workload of this uid that no plan has counted yet, in the order of their ids.
func (m *measurements) results(workload *cluster.Workload) []*nodewisev1.Measurement {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.byWorkload[workload.Key]
	if of == nil || of.uid != workload.UID {
		return nil
	}
	var results []*nodewisev1.Measurement
	for _, entry := range of.entries {
		if entry.result != nil {
			results = append(results, entry.result)
		}
	}
	slices.SortFunc(results, func(a, b *nodewisev1.Measurement) int { return compareIDs(idOf(a.GetId()), idOf(b.GetId())) })
	return results
}

func compareIDs(a, b measurementID) int {
	return cmp.Or(
		cmp.Compare(a.policy, b.policy), cmp.Compare(a.check, b.check), cmp.Compare(a.stage, b.stage),
		cmp.Compare(a.revision, b.revision), cmp.Compare(a.number, b.number))
}

// counted drops results of a workload: a plan that had them was carried out.
func (m *measurements) counted(key types.NamespacedName, results []*nodewisev1.Measurement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.byWorkload[key]
	if of == nil {
		return
	}
	for _, result := range results {
		if entry := of.entries[idOf(result.GetId())]; entry != nil && entry.result != nil {
			delete(of.entries, idOf(result.GetId()))
		}
	}
	if len(of.entries) == 0 {
		delete(m.byWorkload, key)
	}
}

// forget forgets a workload that is gone or has no policy, and ends its measurements.
func (m *measurements) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byWorkload[key].end()
	delete(m.byWorkload, key)
}

// retain forgets what was measured for policies of a workload that are not these, and ends what is under way for them.
func (m *measurements) retain(key types.NamespacedName, policies []*cluster.Policy) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.byWorkload[key]
	if of == nil {
		return
	}
	for id, entry := range of.entries {
		if !slices.ContainsFunc(policies, func(policy *cluster.Policy) bool { return string(policy.UID) == id.policy }) {
			entry.cancel()
			delete(of.entries, id)
		}
	}
	if len(of.entries) == 0 {
		delete(m.byWorkload, key)
	}
}

// addTo adds to the snapshot of a workload with these policies what its plan needs for their analysis, and returns the results that it has. Without
// policies it adds nothing. What was measured for other policies is forgotten.
func (m *measurements) addTo(
	snapshot *nodewisev1.Snapshot, workload *cluster.Workload, policies []*cluster.Policy,
) []*nodewisev1.Measurement {
	daemonSet := snapshot.GetWorkload().GetDaemonSet()
	if len(daemonSet.GetRolloutPolicies()) == 0 {
		m.forget(workload.Key)
		return nil
	}
	m.retain(workload.Key, policies)
	daemonSet.AnalysisHosts = m.hosts
	daemonSet.Measurements = m.results(workload)
	return daemonSet.GetMeasurements()
}

// areCounted reports whether the status that counts the measurements of the plan's snapshot is written: the write has succeeded, or there is none.
// It is in the first phase of its kind. Later ones are of policies that do not count.
func areCounted(plan *nodewisev1.Plan, outcomes []*nodewisev1.Outcome) bool {
	succeeded := map[uint32]bool{}
	for _, outcome := range outcomes {
		succeeded[outcome.GetActionId()] = outcome.GetResult() == nodewisev1.Result_RESULT_SUCCEEDED
	}
	for _, phase := range plan.GetPhases() {
		if phase.GetKind() == nodewisev1.PhaseKind_PHASE_KIND_ROLLOUT_POLICIES {
			writes := plancheck.ActionsOf(&nodewisev1.Plan{Phases: []*nodewisev1.Phase{phase}})
			return !slices.ContainsFunc(writes, func(write *nodewisev1.Action) bool { return !succeeded[write.GetId()] })
		}
	}
	return true
}

// policyWrites are the actions of a plan that write statuses of policies.
func policyWrites(plan *nodewisev1.Plan) []*nodewisev1.Action {
	var writes []*nodewisev1.Action
	for _, phase := range plan.GetPhases() {
		if phase.GetKind() == nodewisev1.PhaseKind_PHASE_KIND_ROLLOUT_POLICIES {
			writes = append(writes, plancheck.ActionsOf(&nodewisev1.Plan{Phases: []*nodewisev1.Phase{phase}})...)
		}
	}
	return writes
}

// statusFor returns a policy's status of the workload as JSON: as the plan has just written it, or else as the snapshot had it. A workload of the
// name that is gone has an entry of its own, with another uid.
func statusFor(planned *planned, measure *nodewisev1.Measure) []byte {
	var objects [][]byte
	for _, write := range policyWrites(planned.plan) {
		if patch := write.GetPatchObject(); patch.GetObject().GetUid() == measure.GetId().GetPolicyUid() {
			objects = append(objects, patch.GetPatch())
		}
	}
	for _, policy := range planned.policies {
		if string(policy.UID) == measure.GetId().GetPolicyUid() {
			objects = append(objects, policy.JSON)
		}
	}
	for _, object := range objects {
		parsed, err := rawjson.Parse(object)
		if err != nil {
			continue
		}
		for _, target := range rawjson.List(parsed, "status", "targets") {
			if rawjson.At(target, "name") != planned.workload.Key.Name || rawjson.At(target, "uid") != string(planned.workload.UID) {
				continue
			}
			if written, err := json.Marshal(target); err == nil {
				return written
			}
		}
	}
	return []byte("{}")
}
