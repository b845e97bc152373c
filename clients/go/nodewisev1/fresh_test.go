package nodewisev1_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"nodewise.dev/clients/go/internal/testkit"
)

// The stubs are those that buf generates from the protocol. To renew them run `buf generate` in clients/go.
func TestStubsAreFresh(t *testing.T) {
	buf := os.Getenv("NODEWISE_BUF")
	if buf == "" {
		buf = testkit.Tool(t, "buf")
	}
	fresh := t.TempDir()
	command := exec.CommandContext(t.Context(), buf, "generate", "--output", fresh)
	command.Dir = ".."
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("buf generate: %v\n%s", err, said)
	}
	made := contents(t, filepath.Join(fresh, "nodewisev1"))
	kept := contents(t, ".")
	if len(made) == 0 {
		t.Fatal("buf made no stubs")
	}
	for name := range kept {
		if _, isMade := made[name]; !isMade {
			t.Errorf("%s is made of nothing any more: remove it", name)
		}
	}
	for name, text := range made {
		if kept[name] != text {
			t.Errorf("%s is not what the protocol says: run `buf generate` in clients/go", name)
		}
	}
}

func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.pb.go"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(path)] = string(text)
	}
	return texts
}
