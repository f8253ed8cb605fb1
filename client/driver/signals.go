package driver

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// DefaultKillSignal is what Stop sends where the task names no signal.
const DefaultKillSignal = "SIGINT"

// ParseSignal translates a signal's name, with or without SIG and in any case,
// or its number. Empty means DefaultKillSignal.
func ParseSignal(name string) (unix.Signal, error) {
	if name == "" {
		name = DefaultKillSignal
	}
	full := strings.ToUpper(name)
	if !strings.HasPrefix(full, "SIG") {
		full = "SIG" + full
	}
	if sig := unix.SignalNum(full); sig != 0 {
		return sig, nil
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= 64 {
		return unix.Signal(n), nil
	}
	return 0, fmt.Errorf("signal %q: not known; use a name such as SIGHUP, SIGINT, SIGTERM, SIGUSR1 or a number from 1 to 64", name)
}
