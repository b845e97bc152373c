package write

import (
	"strings"
	"testing"
)

// Fields that cannot be decoded, of an object that any client may have written, do not hide its name.
func TestTheMetadataOfWhatWasWritten(t *testing.T) {
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for text, want := range map[string]metadata{
		`{"metadata":{"name":"n","resourceVersion":"7","labels":7},"spec":7}`: {Name: "n", ResourceVersion: "7"},
		`{"spec":` + deep + `,"metadata":{"generateName":"n-"}}`:              {GenerateName: "n-"},
		`{}`: {},
	} {
		if got, err := metadataOf([]byte(text)); err != nil || got != want {
			t.Errorf("%.40s: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{``, `7`, `{"metadata":{"name":7}}`, `{"metadata":{}`} {
		if _, err := metadataOf([]byte(text)); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}
