package plancheck

import (
	"strings"
	"testing"
)

func TestWhatIsWrittenIsNoLongerThanAnApiserverTakes(t *testing.T) {
	text := func(length int) []byte { return []byte(`"` + strings.Repeat("x", length-2) + `"`) }
	if _, err := parseWritten(text(maxWritten), "its patch"); err != nil {
		t.Error(err)
	}
	const want = "its patch has 3145729 bytes, and 3145728 are the most"
	if _, err := parseWritten(text(maxWritten+1), "its patch"); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
