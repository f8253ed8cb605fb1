package tracefile

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/scheduler/trace"
)

// DefaultSortRows is how many rows are sorted in memory.
const DefaultSortRows = 250_000

// Options is how a trace is read.
type Options struct {
	// Format is one of the formats; "": FormatAuto.
	Format string
	// GPUsPerNode is the most that a node has: jobs of formats that do not state how they
	// are spread over nodes are cut by it.
	GPUsPerNode int
	// SortRows bounds the rows that are kept and sorted; 0: DefaultSortRows. Longer files
	// must be sorted by arrival.
	SortRows int
	// Limits, not 0, has rows that state no time limit state so many times their duration, rounded up as RoundLimit does.
	Limits float64

	words map[string]string
	sets  map[string][]string
}

// maxWords bounds the words that are kept once for all rows that have them.
const maxWords = 10_000

// word returns a string that equal ones share.
func (o *Options) word(s string) string {
	if w, known := o.words[s]; known || s == "" {
		return w
	}
	s = strings.Clone(s)
	if len(o.words) < maxWords {
		o.words[s] = s
	}
	return s
}

// name returns a string of its own, not a part of the whole line.
func (o *Options) name(s string) string { return strings.Clone(s) }

func (o *Options) models(s string) []string {
	if s == "" {
		return nil
	}
	if set, known := o.sets[s]; known {
		return set
	}
	set := models(strings.Clone(s))
	if len(o.sets) < maxWords {
		o.sets[strings.Clone(s)] = set
	}
	return set
}

// Trace is a trace that can be read again and again.
type Trace struct {
	Path   string
	Format string
	// list are the rows, if there are few enough; nil: they are read from the file.
	list []*trace.Row
	o    Options
	// Timeless: the file does not state when its rows arrive.
	Timeless bool
	// Workflows: its rows may be of workflows.
	Workflows bool
}

// Open looks at a trace. One of at most SortRows rows is read and sorted by arrival.
func Open(path string, o Options) (*Trace, error) {
	if o.SortRows <= 0 {
		o.SortRows = DefaultSortRows
	}
	if o.Format == "" {
		o.Format = FormatAuto
	}
	t := &Trace{Path: path, Format: o.Format, o: o}
	if !slices.Contains(Formats(), o.Format) {
		return nil, fmt.Errorf("format %q: must be %s", o.Format, strings.Join(Formats(), ", "))
	}
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if o.Format == FormatAuto {
		if t.Format, err = detect(path, f); err != nil {
			return nil, err
		}
	} else if _, err = t.read(f, 1); err != nil { // the names of columns, and a first look
		return nil, err
	}
	return t, t.load()
}

// detect returns the format of a file.
func detect(path string, r io.Reader) (string, error) {
	names, err := newTable(path, r, nil)
	if err != nil {
		return "", err
	}
	have := make([]string, 0, len(names.at))
	for name := range names.at { // sorted below
		have = append(have, name)
	}
	slices.Sort(have)
	if found, ok := formatOf(have); ok {
		return found, nil
	}
	return "", fmt.Errorf("%s:1: no known trace: its columns are %s; %s", path, strings.Join(have, ","), wanted(nil))
}

// load reads the file, if it is short enough, and sorts it.
func (t *Trace) load() error {
	f, err := open(t.Path)
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	rows, err := t.read(f, t.o.SortRows+1)
	if err != nil {
		return err
	}
	if len(rows) > t.o.SortRows {
		return nil // it is read again, row by row
	}
	if len(rows) == 0 {
		return fmt.Errorf("%s: has no rows after the names of its columns", t.Path)
	}
	list := make([]*trace.Row, len(rows))
	first := rows[0].at
	for _, r := range rows {
		if r.at.Before(first) {
			first = r.at
		}
	}
	for i := range rows {
		if list[i] = rows[i].row; !first.IsZero() {
			list[i].Arrival = rows[i].at.Sub(first)
		}
		if err := list[i].Validate(); err != nil {
			return fmt.Errorf("%s:%d: %w", t.Path, rows[i].line, err)
		}
	}
	t.list = list
	return nil
}

// readRow is a row as it was read; at is set where a file states dates.
type readRow struct {
	row  *trace.Row
	at   time.Time
	line int
}

// read reads up to so many rows.
func (t *Trace) read(r io.Reader, most int) ([]readRow, error) {
	var rows []readRow
	stop := errors.New("enough")
	err := t.each(r, func(x readRow) error {
		rows = append(rows, x)
		if len(rows) >= most {
			return stop
		}
		return nil
	})
	if errors.Is(err, stop) {
		err = nil
	}
	return rows, err
}

// each reads row by row.
func (t *Trace) each(r io.Reader, visit func(readRow) error) error {
	how := formats[t.Format]
	table, err := newTable(t.Path, r, how.columns)
	if err != nil {
		return err
	}
	if how.strict {
		if err := table.noOthers(how.columns); err != nil {
			return err
		}
	}
	o := t.o
	o.words, o.sets = map[string]string{}, map[string][]string{}
	if _, timed := table.at["creation_time"]; t.Format == FormatOpenB && !timed {
		t.Timeless = true
	}
	if _, named := table.at["workflow"]; t.Format == FormatSimple && named {
		t.Workflows = true
	}
	for {
		more, err := table.next()
		if err != nil || !more {
			return err
		}
		row, at := how.row(table, &o)
		if row.MaxRun == 0 && o.Limits > 0 && row.Duration != trace.Forever {
			row.MaxRun = RoundLimit(time.Duration(min(float64(trace.MaxTime), float64(row.Duration)*o.Limits)))
		}
		if table.err != nil {
			return table.err
		}
		if err := row.Validate(); err != nil {
			return fmt.Errorf("%s:%d: %w", t.Path, table.line(), err)
		}
		if err := visit(readRow{&row, at, table.line()}); err != nil {
			return err
		}
	}
}

// Len is how many rows there are; -1: nobody has counted.
func (t *Trace) Len() int {
	if t.list == nil {
		return -1
	}
	return len(t.list)
}

// At returns a row by its number from 0, in the order of the file; only of traces of which
// Len is known.
func (t *Trace) At(i int) *trace.Row { return t.list[i] }

// Rows returns the rows in the order of their arrival; those that arrive at once in the
// order of the file.
func (t *Trace) Rows() iter.Seq2[*trace.Row, error] {
	if t.list != nil {
		sorted := slices.Clone(t.list)
		slices.SortStableFunc(sorted, func(a, b *trace.Row) int {
			return int(min(1, max(-1, a.Arrival-b.Arrival)))
		})
		return func(yield func(*trace.Row, error) bool) {
			for _, r := range sorted {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
	return t.stream
}

// stream reads the file row by row, which must be sorted.
func (t *Trace) stream(yield func(*trace.Row, error) bool) {
	f, err := open(t.Path)
	if err != nil {
		yield(nil, fmt.Errorf("trace: %w", err))
		return
	}
	defer func() { _ = f.Close() }() // it was only read
	var first time.Time
	var last time.Duration
	stopped := errors.New("stopped")
	// A view of its own: several replays read at a time.
	view := *t
	err = view.each(f, func(x readRow) error {
		if first.IsZero() {
			first = x.at
		}
		if !x.at.IsZero() {
			x.row.Arrival = x.at.Sub(first)
		}
		if x.row.Arrival < last {
			return fmt.Errorf("%s:%d: arrives before the row above it, and the file has over %d rows, which is all that are sorted in memory; "+
				"sort it by arrival: (head -1 FILE; tail -n +2 FILE | sort -t, -s -k%s) > SORTED, or allow more with -sort-rows",
				t.Path, x.line, t.o.SortRows, t.sortKey())
		}
		last = x.row.Arrival
		if !yield(x.row, nil) {
			return stopped
		}
		return nil
	})
	if err != nil && !errors.Is(err, stopped) {
		yield(nil, err)
	}
}

// sortKey is sort's key for the format's arrival, if columns are in their usual order.
func (t *Trace) sortKey() string {
	switch t.Format {
	case FormatOpenB:
		return "9,9n"
	case FormatPhilly:
		return "1,1"
	}
	return "1,1n"
}
