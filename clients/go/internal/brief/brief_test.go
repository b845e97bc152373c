package brief_test

import (
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
