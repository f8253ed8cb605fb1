package tracefile

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// open opens a file, and what is in it if it is compressed.
func open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path) // the user names the file
	if err != nil {
		return nil, err
	}
	r, err := unzip(f)
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return struct {
		io.Reader
		io.Closer
	}{r, f}, nil
}

// unzip reads through gzip where the first two bytes show it.
func unzip(f io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(f, 1<<16)
	if head, err := b.Peek(2); err == nil && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		return z, nil
	}
	return b, nil
}

// column is one that a table may have.
type column struct {
	name     string
	required bool
}

// table is a CSV file with a line of names.
type table struct {
	path string
	csv  *csv.Reader
	at   map[string]int // columns by name
	// names are the columns in their order.
	names []string
	row   []string
	err   error // the first of the row that was read last
}

// maxLine bounds a line: a file without line ends must not eat the memory.
const maxLine = 1 << 20

// newTable reads the names. Columns of other names are ignored.
func newTable(path string, r io.Reader, columns []column) (*table, error) {
	t := &table{path: path, csv: csv.NewReader(&bounded{r: r}), at: map[string]int{}}
	t.csv.ReuseRecord = true
	t.csv.TrimLeadingSpace = true
	names, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: is empty; its first line must name the columns: %s", path, wanted(columns))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i, name := range names {
		name = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))
		if _, twice := t.at[name]; twice && name != "" {
			line, col := t.csv.FieldPos(i)
			return nil, fmt.Errorf("%s:%d:%d: column %q stands twice", path, line, col, name)
		}
		t.at[name] = i
		t.names = append(t.names, name)
	}
	var missing []string
	for _, c := range columns {
		if _, has := t.at[c.name]; !has && c.required {
			missing = append(missing, c.name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s:1: missing columns: %s; the first line must name %s", path, strings.Join(missing, ", "), list(columns))
	}
	return t, nil
}

// wanted names the columns; those of every format of a trace where none are named.
func wanted(columns []column) string {
	if len(columns) > 0 {
		return list(columns)
	}
	return fmt.Sprintf("openb has %s; philly has %s; simple has %s", list(openbColumns), list(phillyColumns), list(simpleColumns))
}

// noOthers refuses columns that are not known, but for those that begin with "x-": a
// slip of the pen must not leave out what was meant. It is called before the first row.
func (t *table) noOthers(columns []column) error {
	known := make([]string, len(columns))
	for i, c := range columns {
		known[i] = c.name
	}
	for i, name := range t.names {
		if name == "" || slices.Contains(known, name) || strings.HasPrefix(name, "x-") {
			continue
		}
		line, col := t.csv.FieldPos(i)
		near := ""
		if word := structs.Nearest(name, known); word != "" {
			near = fmt.Sprintf("; did you mean %q?", word)
		}
		return fmt.Errorf("%s:%d:%d: column %q: is not known%s (there are %s; columns of your own begin with x-)", t.path, line, col, clip(name), near, list(columns))
	}
	return nil
}

// list names columns; those that may be left out stand in brackets.
func list(columns []column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		if names[i] = c.name; !c.required {
			names[i] = "[" + c.name + "]"
		}
	}
	return strings.Join(names, ",")
}

// next reads a row; false at the end.
func (t *table) next() (bool, error) {
	row, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		var at *csv.ParseError
		if errors.As(err, &at) && errors.Is(err, csv.ErrFieldCount) {
			return false, fmt.Errorf("%s:%d: wrong number of fields: the line has %d, the first line names %d columns", t.path, at.Line, len(row), len(t.names))
		}
		if errors.As(err, &at) {
			return false, fmt.Errorf("%s:%d:%d: %w", t.path, at.Line, at.Column, at.Err)
		}
		return false, fmt.Errorf("%s: %w", t.path, err)
	}
	t.row, t.err = row, nil
	return true, nil
}

// line is where the row is.
func (t *table) line() int {
	line, _ := t.csv.FieldPos(0)
	return line
}

// fail notes what is wrong with a column of the row.
func (t *table) fail(name, format string, args ...any) {
	if t.err != nil {
		return
	}
	line, col := t.csv.FieldPos(0)
	if i, has := t.at[name]; has {
		line, col = t.csv.FieldPos(i)
	}
	t.err = fmt.Errorf("%s:%d:%d: %s", t.path, line, col, fmt.Sprintf(format, args...))
}

// text returns a column of the row; "" if there is none.
func (t *table) text(name string) string {
	if i, has := t.at[name]; has {
		return strings.TrimSpace(t.row[i])
	}
	return ""
}

// whole returns a whole number; unset where the column is absent or empty.
func (t *table) whole(name string, unset, low, high int) int {
	s := t.text(name)
	if s == "" {
		return unset
	}
	v, err := strconv.ParseFloat(s, 64) // some write 4.0
	if err != nil || v != float64(int(v)) || v < float64(low) || v > float64(high) {
		t.fail(name, "%s %q: must be a whole number from %d to %d", name, clip(s), low, high)
		return unset
	}
	return int(v)
}

// seconds returns a time; false where the column is absent or empty.
func (t *table) seconds(name string, most time.Duration) (time.Duration, bool) {
	s := t.text(name)
	if s == "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v <= most.Seconds()) {
		t.fail(name, "%s %q: must be seconds from 0 to %.0f", name, clip(s), most.Seconds())
		return 0, false
	}
	return time.Duration(v*1e6+0.5) * time.Microsecond, true
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

// models reads "A|B".
func models(s string) []string {
	if s == "" {
		return nil
	}
	out := strings.FieldsFunc(s, func(c rune) bool { return c == '|' || c == ' ' })
	slices.Sort(out)
	return slices.Compact(out)
}

// bounded refuses lines that are too long.
type bounded struct {
	r    io.Reader
	line int // bytes since the last line end
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	for _, c := range p[:n] {
		if b.line++; c == '\n' {
			b.line = 0
		}
		if b.line > maxLine {
			return 0, fmt.Errorf("a line has over %d bytes: it is no CSV", maxLine)
		}
	}
	return n, err
}
