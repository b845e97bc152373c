package plancheck

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/nodewisev1"
)

// A policy may be large, and a plan may ask for many measurements of one.
func TestEachPolicyIsReadOnceForAPlan(t *testing.T) {
	text := fmt.Sprintf(`{"spec":{"stages":[{"name":"s","analysis":[{"name":"c","webhook":{"url":"https://checks"}}]}%s]}}`,
		strings.Repeat(`,{"name":"other"}`, 10_000))
	asked := &Asked{Policies: []*cluster.Policy{{Key: types.NamespacedName{Name: "p"}, UID: "u", JSON: []byte(text)}}}
	allocations := func(count int) float64 {
		var actions []*nodewisev1.Action
		for number := range count {
			actions = append(actions, &nodewisev1.Action{Kind: &nodewisev1.Action_Measure{Measure: &nodewisev1.Measure{
				Id:         &nodewisev1.MeasurementId{PolicyUid: "u", RevisionHash: "h", Stage: "s", Check: "c", Number: uint32(number)},
				PolicyName: "p", Provider: &nodewisev1.Measure_Webhook{Webhook: &nodewisev1.WebhookCall{Url: "https://checks"}},
			}}})
		}
		return testing.AllocsPerRun(1, func() {
			if err := checkMeasurements(actions, asked); err != nil {
				t.Error(err)
			}
		})
	}
	if one, many := allocations(1), allocations(maxMeasurements); many > 2*one {
		t.Errorf("%d measurements need %.0f allocations, and one needs %.0f", maxMeasurements, many, one)
	}
}
