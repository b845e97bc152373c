package apply_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The message of an apiserver, which may be that of a webhook, is on one line and shortened.
func TestWhatTheApiserverSaysIsCut(t *testing.T) {
	long := "denied\nlevel=ERROR\x1b[2J" + strings.Repeat("x", 3<<20)
	_, kube := start(t, map[string][]answer{"POST " + podPath: {refusal(403, "Forbidden", long)}})
	applied := run(t, kube, phase(one(create("", "n"))))
	const want = `denied\nlevel=ERROR\u{1b}[2Jxxx`
	for _, text := range []string{applied.Outcomes[0].GetMessage(), applied.FirstFailure.Error(), fmt.Sprint(applied.FirstFailure)} {
		if !strings.HasPrefix(text, want) || len(text) > 1010 {
			t.Errorf("got %.2000s", text)
		}
	}
	if !apierrors.IsForbidden(applied.FirstFailure) {
		t.Error("it cannot be told what was refused")
	}
}
