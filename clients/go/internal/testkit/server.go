package testkit

import (
	"bufio"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"
)

var listening = regexp.MustCompile(`listening.*?(127\.0\.0\.1:[0-9]+)`)

// StartServer starts the planning service on a free port, and returns its address.
func StartServer(t testing.TB) string {
	t.Helper()
	command := exec.Command(Server(t), "--listen", "127.0.0.1:0")
	log, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	addresses := make(chan string, 1)
	go func() {
		defer close(addresses)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if found := listening.FindStringSubmatch(lines.Text()); found != nil {
				addresses <- found[1]
			}
		}
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	select {
	case address, said := <-addresses:
		if !said {
			t.Fatal("the service ended before it said where it listens")
		}
		return address
	case <-time.After(30 * time.Second):
		t.Fatal("the service does not say where it listens")
		return ""
	}
}
