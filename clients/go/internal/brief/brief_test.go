package brief_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"nodewise.dev/clients/go/internal/brief"
)

func TestTextsStayOnALineAndAreShort(t *testing.T) {
	for text, want := range map[string]string{
		"as it is: „ä“":                 "as it is: „ä“",
		"one\nlevel=INFO\ttwo\r\x1b[2J": `one\nlevel=INFO\ttwo\r\u{1b}[2J`,
		strings.Repeat("x", 1000):       strings.Repeat("x", 1000),
		strings.Repeat("ä", 1_000_000):  strings.Repeat("ä", 500) + "…",
		strings.Repeat("x", 999) + "\n": strings.Repeat("x", 999) + "…",
		strings.Repeat("\u009b", 1_000): strings.Repeat(`\u{9b}`, 166) + "…",
	} {
		if got := brief.Text(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestErrorsCanBeAskedAsBefore(t *testing.T) {
	if brief.Error(nil) != nil {
		t.Error("there is an error")
	}
	err := brief.Error(fmt.Errorf("one\n%s: %w", strings.Repeat("x", 2000), io.EOF))
	if !errors.Is(err, io.EOF) || len(err.Error()) > 1010 || !strings.HasPrefix(err.Error(), `one\nx`) {
		t.Errorf("got %v", err)
	}
}
