package ui

import (
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTable(t *testing.T) {
	f := func(want string, rows ...[]string) {
		t.Helper()
		var b strings.Builder
		Table(&b, rows)
		if b.String() != want {
			t.Errorf("got\n%q\nwant\n%q", b.String(), want)
		}
	}
	f("")
	f("a\n", []string{"a"})
	f("ID    Name\nx     long name\nlong\n", []string{"ID", "Name"}, []string{"x", "long name"}, []string{"long", ""})
	f("ä   b\nxx  c\n", []string{"ä", "b"}, []string{"xx", "c"})
	f("a  b\nc\n", []string{"a", "b"}, []string{"c"})
}

func TestTableAligns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 5).Draw(t, "columns")
		cell := rapid.StringMatching(`[a-zäöü#]{1,9}`)
		var rows [][]string
		for range rapid.IntRange(1, 6).Draw(t, "rows") {
			var row []string
			for range columns {
				row = append(row, cell.Draw(t, "cell"))
			}
			rows = append(rows, row)
		}
		var b strings.Builder
		Table(&b, rows)
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		for i, line := range lines {
			if got := strings.Fields(line); strings.Join(got, "|") != strings.Join(rows[i], "|") {
				t.Fatalf("row %d: %q, want %q", i, got, rows[i])
			}
			// Every column begins where the first line's does.
			at := 0
			for c := range columns - 1 {
				width := 0
				for _, row := range rows {
					width = max(width, utf8.RuneCountInString(row[c]))
				}
				at += width + 2
				if runes := []rune(line); runes[at] == ' ' || runes[at-1] != ' ' {
					t.Fatalf("row %d column %d does not begin at %d: %q", i, c+1, at, line)
				}
			}
		}
	})
}

func TestPairs(t *testing.T) {
	var b strings.Builder
	Pairs(&b, []Pair{{"ID", "x"}, {"Größe", "1"}, {"Empty", ""}})
	if want := "ID    = x\nGröße = 1\nEmpty =\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestFormats(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(Short(-time.Second), "0s")
	f(Short(59*time.Second), "59s")
	f(Short(61*time.Second), "1m1s")
	f(Short(59*time.Minute+59*time.Second), "59m59s")
	f(Short(25*time.Hour), "1d1h")
	f(Short(90*time.Minute), "1h30m")
	now := time.Unix(1000, 0)
	f(Ago(0, now), "<none>")
	f(Ago(now.Add(-5*time.Second).UnixNano(), now), "5s ago")
	f(Ago(now.Add(time.Hour).UnixNano(), now), "0s ago") // another machine's clock
	f(Time(0), "<none>")
	f(Time(now.UnixNano()), now.Format("2006-01-02T15:04:05-07:00"))
	f(MiB(0), "0 MiB")
	f(MiB(1023), "1023 MiB")
	f(MiB(2048), "2.0 GiB")
	f(MiB(-1), "-1 MiB")
	f(Bytes(0), "0 B")
	f(Bytes(1536), "1.5 KiB")
	f(OrNone(""), "<none>")
	f(OrNone("x"), "x")
}

func TestBar(t *testing.T) {
	f := func(done, total, width int, want string) {
		t.Helper()
		if got := Bar(done, total, width); got != want {
			t.Errorf("Bar(%d, %d, %d) = %q, want %q", done, total, width, got, want)
		}
	}
	f(0, 4, 4, "[----]")
	f(1, 4, 4, "[#---]")
	f(4, 4, 4, "[####]")
	f(9, 4, 4, "[####]")
	f(0, 0, 4, "[----]")
	f(-1, 4, 4, "[----]")
	f(999, 1000, 4, "[###-]") // full only when all is done
}

func TestNoColoursWhereThereIsNoTerminal(t *testing.T) {
	var b strings.Builder
	if s := StyleFor(&b); s.Bold("x")+s.Red("x")+s.Green("x")+s.Yellow("x") != "xxxx" {
		t.Error("a buffer got colours")
	}
	f, err := os.CreateTemp(t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it holds nothing
	if IsTerminal(f) || IsTerminal(nil) {
		t.Error("a file is no terminal")
	}
	b.Reset()
	Fprintf(NewWriter(&b), "%s", Coloured().Red("x"))
	if b.String() != "\x1b[31mx\x1b[0m" {
		t.Errorf("red is %q", b.String())
	}
}

func TestNoColor(t *testing.T) {
	terminal, err := os.Open("/dev/ptmx") // the one terminal that a test can have
	if err != nil {
		t.Logf("without a terminal only the absence of one is looked at: %v", err)
		terminal = os.Stdin
	} else {
		defer terminal.Close() //nolint:errcheck // it holds nothing
	}
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if on := StyleFor(terminal).on; on != IsTerminal(terminal) {
		t.Errorf("colours %v on a terminal", on)
	}
	t.Setenv("NO_COLOR", "1")
	if StyleFor(terminal).on {
		t.Error("NO_COLOR is not honoured")
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	if StyleFor(terminal).on {
		t.Error("a dumb terminal got colours")
	}
}

func TestLiveDrawsInPlace(t *testing.T) {
	var b strings.Builder
	quiet := NewLive(&b)
	quiet.Draw([]string{"a"})
	quiet.Clear()
	if b.Len() != 0 || quiet.On() {
		t.Errorf("drawn where there is no terminal: %q", b.String())
	}
	l := &Live{w: &b, on: true}
	l.Draw([]string{"a", "b"})
	l.Draw([]string{"c"})
	l.Clear()
	l.Clear()
	if want := "a\nb\n\x1b[2A\x1b[Jc\n\x1b[1A\x1b[J"; b.String() != want {
		t.Errorf("drew %q, want %q", b.String(), want)
	}
}
