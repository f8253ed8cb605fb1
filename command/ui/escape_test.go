package ui

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

const hostile = "a\x1b[31mb\nc\u202e\xff"

const shown = `a\x1b[31mb\nc\u202e\xff`

func TestFprintf(t *testing.T) {
	f := func(want, format string, args ...any) {
		t.Helper()
		var b strings.Builder
		Fprintf(NewWriter(&b), format, args...)
		if b.String() != want {
			t.Errorf("got %q, want %q", b.String(), want)
		}
	}
	type name string
	f("a\n\tb 7 1.50 true <nil>\n", "a\n\t%s %d %.2f %v %v\n", "b", 7, 1.5, true, nil)
	f(shown+" "+shown, "%s %v", hostile, name(hostile))
	f(`"a\x1b[31mb\nc\u202e\xff" 'x'`, "%q %q", hostile, 'x') // escaped once
	f(`"\u3164"`, "%q", "\u3164")                             // printable, says %q
	f(shown+"!", "%v!", errors.New(hostile))
	f("["+shown+" x] map[k:"+shown+"]", "%v %v", []string{hostile, "x"}, map[string]string{"k": hostile})
	f("1m0s|  ab|ab  |{"+shown+"}", "%s|%4s|%-4v|%v", time.Minute, "ab", name("ab"), struct{ s string }{hostile})
	f("a\\x1b[31mb\nc\\u202e\\xff", "%s", Lines(hostile))
	f("one\n  two\n  * three", "%s", Indented(" one\ntwo\n  * three\n"))
	f("a\\x1bb\n", "a\x1bb\n") // a format of ours would not: the last wall holds all the same
}

// Nothing that is named can colour anything, however it looks; what we colour is coloured.
func TestColoursAreOurs(t *testing.T) {
	var b strings.Builder
	w, style := NewWriter(&b), Coloured()
	Fprintf(w, "%s", style.Red(hostile)+" "+hostile)
	if want := "\x1b[31m" + shown + "\x1b[0m " + shown; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	b.Reset()
	Fprintf(w, "%s", "\x1b"+strings.Repeat("A", len(markStart())-1)+"r"+markStart()+"?"+markStart())
	if strings.Contains(b.String(), "\x1b") {
		t.Errorf("unknown marks got through: %q", b.String())
	}
	b.Reset()
	Table(w, [][]string{{"Name", "Status"}, {style.Green("x"), "y"}, {hostile, "z"}})
	if want := "Name                     Status\n\x1b[32mx\x1b[0m                        y\n" + shown + "  z\n"; b.String() != want {
		t.Errorf("table\n%q, want\n%q", b.String(), want)
	}
	b.Reset()
	Pairs(w, []Pair{{Key: "k\n", Value: hostile}, {Key: style.Bold("k"), Value: "v"}})
	if want := "k\\n = " + shown + "\n\x1b[1mk\x1b[0m   = v\n"; b.String() != want {
		t.Errorf("pairs\n%q, want\n%q", b.String(), want)
	}
	b.Reset()
	l := &Live{w: w, on: true}
	l.Draw([]string{hostile})
	l.Clear()
	if want := shown + "\n\x1b[1A\x1b[J"; b.String() != want {
		t.Errorf("drew %q, want %q", b.String(), want)
	}
}

func TestWriterPassesOnItsFile(t *testing.T) {
	if IsTerminal(NewWriter(&strings.Builder{})) {
		t.Error("a buffer is no terminal")
	}
	terminal, err := os.Open("/dev/ptmx")
	if err != nil {
		t.Logf("without a terminal only a buffer is looked at: %v", err)
		return
	}
	defer terminal.Close() //nolint:errcheck // it holds nothing
	if IsTerminal(NewWriter(terminal)) != IsTerminal(terminal) {
		t.Error("a terminal behind a Writer is one")
	}
}

func TestJSON(t *testing.T) {
	var b strings.Builder
	if err := JSON(NewWriter(&b), map[string]string{"a": "x\u202e<\x1b\U000e0041"}); err != nil {
		t.Fatal(err)
	}
	if want := "{\n    \"a\": \"x\\u202e\\u003c\\u001b\\udb40\\udc41\"\n}\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	if err := JSON(NewWriter(&b), func() {}); err == nil {
		t.Error("a function became JSON")
	}
}

func BenchmarkTable(b *testing.B) {
	rows := make([][]string, 10_000)
	for i := range rows {
		rows[i] = []string{"01976c1c-5f3a-7c11", "default", "training-run-0123456789.worker[17]", "gpu-node-0042", "running", "2m5s ago"}
	}
	w := NewWriter(discard{})
	for b.Loop() {
		Table(w, rows)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
