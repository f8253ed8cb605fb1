package ui

import (
	"errors"
	"flag"
	"io"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// What is wrong with a flag is told with what is allowed.
func TestFlagError(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		fs := flag.NewFlagSet("x", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		fs.Bool("verbose", false, "")
		fs.Bool("keep-whole", false, "")
		fs.Bool("preempt-batch-scheduler", false, "")
		fs.Bool("preempt-service-scheduler", false, "")
		fs.Int("parallel", 1, "")
		fs.Duration("wait", time.Second, "")
		fs.Float64("part", 1, "")
		fs.Func("seed", "", func(s string) error {
			if s == "8" {
				return errors.New(`"8": must be 7: -verbose: no`)
			}
			if s != "7" {
				return errors.New("must be 7: -verbose: no")
			}
			return nil
		})
		got := ""
		if err := FlagError(fs, fs.Parse(args), structs.Nearest); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
	f("", "-verbose", "-seed=7")
	f("there is no flag -verbos; did you mean -verbose?", "-verbos")
	f("there is no flag -keepwhole; did you mean -keep-whole?", "--keepwhole")
	f("there is no flag -keep_whole; did you mean -keep-whole?", "-keep_whole")
	f("there is no flag -preempt-batch; did you mean -preempt-batch-scheduler?", "-preempt-batch=true")
	f("there is no flag -quiet", "-quiet")
	f("there is no flag -1; a number that is meant, such as a count, must be 0 or more", "-1")
	f(`-keep-whole "maybe": must be true or false`, "-keep-whole=maybe")
	f(`-keep-whole "": must be true or false`, "-keep-whole=")
	f(`-parallel "many": must be a whole number`, "-parallel", "many")
	f(`-parallel "99999999999999999999": must be a whole number`, "-parallel=99999999999999999999")
	f(`-wait "5": must be a time such as 30s, 5m or 1h30m`, "-wait", "5")
	f(`-part "half": must be a number`, "-part=half")
	f(`-seed "a\"b": must be 7: -verbose: no`, `-seed=a"b`)
	f(`-seed "8": must be 7: -verbose: no`, "-seed=8")
	f("-wait: needs a value; write -wait=VALUE", "-wait")
	f("flag: help requested", "-h")
}
