package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestConfigValues(t *testing.T) {
	c := ReadConfig(map[string]any{
		"s": "x", "n": 5, "f": 1.5, "b": true, "list": []any{"a", 2, false}, "sl": []string{"q"},
		"i1": 3, "i2": int64(4), "i3": 5.0, "i4": json.Number("6"), "i5": "7", "i6": "${meta.n}",
		"b1": true, "b2": "false", "d": "1m30s", "d2": "${meta.d}", "null": nil,
		"m": map[string]any{"k": "v", "n": 1}, "blocks": []any{map[string]any{"a": "1"}, map[string]any{"a": "2", "b": "3"}},
	})
	got := fmt.Sprintln(c.String("s"), c.String("n"), c.String("f"), c.String("b"), c.Strings("list"), c.Strings("sl"),
		c.Int("i1"), c.Int("i2"), c.Int("i3"), c.Int("i4"), c.Int("i5"), c.Int("i6"),
		c.Bool("b1"), c.Bool("b2"), c.Duration("d"), c.Duration("d2"), c.String("null"), c.StringMap("m"), c.StringMap("blocks"))
	want := "x 5 1.5 true [a 2 false] [q] 3 4 5 6 7 0 true false 1m30s 0s  map[k:v n:1] map[a:2 b:3]"
	if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") || c.Err() != nil {
		t.Fatalf("got  %s\nwant %s\n%v", got, want, c.Err())
	}
}

func TestConfigErrors(t *testing.T) {
	f := func(values map[string]any, read func(c *Config), want string) {
		t.Helper()
		c := ReadConfig(values)
		read(c)
		err := c.Err()
		if err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	f(nil, func(c *Config) { c.Required("command") }, `config: command: must be given: a string that is not empty`)
	f(map[string]any{"a": []any{}}, func(c *Config) { c.String("a") }, `config: a: must be a string, not a list`)
	f(map[string]any{"a": "x"}, func(c *Config) { c.Strings("a") }, `config: a: must be a list of strings, not "x"`)
	f(map[string]any{"a": []any{"x", []any{}}}, func(c *Config) { c.Strings("a") }, `config: a: element 1 must be a string, not a list`)
	f(map[string]any{"a": 1.5}, func(c *Config) { c.Int("a") }, `config: a: must be a whole number, not 1.5`)
	f(map[string]any{"a": "soon"}, func(c *Config) { c.Duration("a") }, `config: a: must be a duration such as "30s" or "1m30s", not "soon"`)
	f(map[string]any{"a": "-3s"}, func(c *Config) { c.Duration("a") }, `config: a: must be a duration such as "30s" or "1m30s", not "-3s"`)
	f(map[string]any{"a": "si"}, func(c *Config) { c.Bool("a") }, `config: a: must be true or false, not "si"`)
	f(map[string]any{"a": "x"}, func(c *Config) { c.StringMap("a") }, `config: a: must be a map of strings, not "x"`)
	f(map[string]any{"y": 1, "x": 1}, func(c *Config) { c.Int("b"); c.Bool("c") },
		"config: \"x\" is not a field of this driver; it has b, c\nconfig: \"y\" is not a field of this driver; it has b, c")
}

func TestParseSignal(t *testing.T) {
	f := func(name string, want unix.Signal) {
		t.Helper()
		got, err := ParseSignal(name)
		if got != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %v %v", name, got, err)
		}
	}
	f("", unix.SIGINT)
	f("SIGTERM", unix.SIGTERM)
	f("usr1", unix.SIGUSR1)
	f("9", unix.SIGKILL)
	f("0", 0)
	f("SIGNOPE", 0)
	f("65", 0)
}

func TestRegistry(t *testing.T) {
	r, err := NewRegistry()
	if err != nil || len(r.Names()) != 0 {
		t.Fatal(err)
	}
	if _, err := r.Get("docker"); err == nil || !strings.Contains(err.Error(), "docker") {
		t.Fatal(err)
	}
}

func TestRecoverable(t *testing.T) {
	base := errors.New("x")
	if IsRecoverable(base) || !IsRecoverable(fmt.Errorf("y: %w", Recoverable(base))) || !errors.Is(Recoverable(base), base) || Recoverable(nil) != nil {
		t.Fatal("recoverable")
	}
	if (ExitResult{Unknown: true}).Successful() || !(ExitResult{FinishedAt: time.Unix(1, 0)}).Successful() {
		t.Fatal("successful")
	}
}

func FuzzReadConfig(f *testing.F) {
	f.Add(`{"a":1,"b":["x"],"c":{"d":true},"e":"5s"}`)
	f.Fuzz(func(t *testing.T, data string) {
		var m map[string]any
		if json.Unmarshal([]byte(data), &m) != nil {
			return
		}
		c := ReadConfig(m)
		for name := range m {
			c.String(name)
			c.Strings(name)
			c.StringMap(name)
			c.Int(name)
			c.Bool(name)
			c.Duration(name)
		}
		_ = c.Err()
	})
}
