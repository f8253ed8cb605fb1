package telemetry

import (
	"bufio"
	"cmp"
	"io"
	"slices"
	"strconv"
	"time"
)

// TextType is the media type of what WriteText writes.
const TextType = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"

// WriteText writes everything in Prometheus' text format: first what Go's runtime reports, the timers, and what was pushed, by
// name, and then the values of all sources. The labels of each series were rendered when it came to be, so that 100,000 series
// take some 20 ms.
func (h *Hub) WriteText(to io.Writer) error {
	derived, now := h.Collect(), time.Now()
	w, names := &textWriter{w: bufio.NewWriterSize(to, 64<<10)}, taken{}
	host := ""
	if h.opts.Host != "" {
		host = Labels("host", h.opts.Host).text
	}
	derived.Each(func(f *Family, _ []Value) { names.take(f.Prometheus(), f.Kind) })
	for _, f := range h.gathered(host, now, names) {
		w.head(f.name, f.help, f.kind)
		f.write(w)
	}
	derived.Each(func(f *Family, values []Value) {
		name := f.Prometheus()
		w.head(name, f.Help, f.Kind)
		for _, v := range values {
			w.value(name, "", host, v.Labels.Text(), v.Value)
		}
	})
	return w.w.Flush() // returns what went wrong before
}

// gathered returns the families that are not derived, by name. One whose name is taken is left out: twice the same name would
// make Prometheus refuse everything.
func (h *Hub) gathered(host string, now time.Time, names taken) []textFamily {
	var out []textFamily
	take := func(f textFamily) {
		if names.take(f.name, f.kind) {
			out = append(out, f)
		}
	}
	for _, f := range goFamilies() {
		take(f)
	}
	for _, t := range h.timers {
		d, used := t.digest(now)
		if !used || !h.opts.Allow(Prefix+t.family.Name) {
			continue
		}
		name := t.family.Prometheus()
		take(textFamily{name, t.family.Help, Summary, func(w *textWriter) { w.summary(name, host, d) }})
	}
	for _, f := range h.pushed.families(now) {
		take(f)
	}
	slices.SortFunc(out, func(a, b textFamily) int { return cmp.Compare(a.name, b.name) })
	return out
}

// textFamily is a family that writes its series itself.
type textFamily struct {
	name  string // as Prometheus has it
	help  string
	kind  Kind
	write func(*textWriter)
}

// taken are the names that series have.
type taken map[string]bool

// take takes the names of the series of a family. It reports whether they were free, and takes none if one was not.
func (t taken) take(name string, kind Kind) bool {
	names := []string{name}
	if kind == Summary {
		names = append(names, name+"_sum", name+"_count")
	}
	if slices.ContainsFunc(names, func(n string) bool { return t[n] }) {
		return false
	}
	for _, n := range names {
		t[n] = true
	}
	return true
}

// textWriter writes Prometheus' text format. What goes wrong shows when w is flushed.
type textWriter struct {
	w      *bufio.Writer
	number []byte
}

// head begins a family.
func (t *textWriter) head(name, help string, kind Kind) {
	_, _ = t.w.WriteString("# HELP " + name + " " + helpEscaper.Replace(help) + "\n# TYPE " + name + " " + string(kind) + "\n")
}

// value writes the value of a series, whose labels come in two parts.
func (t *textWriter) value(name, suffix, labels, more string, v float64) {
	_, _ = t.w.WriteString(name)
	_, _ = t.w.WriteString(suffix)
	if labels != "" || more != "" {
		_ = t.w.WriteByte('{')
		_, _ = t.w.WriteString(labels)
		if labels != "" && more != "" {
			_ = t.w.WriteByte(',')
		}
		_, _ = t.w.WriteString(more)
		_ = t.w.WriteByte('}')
	}
	// NaN, +Inf and -Inf are what they are called in the format.
	t.number = append(strconv.AppendFloat(append(t.number[:0], ' '), v, 'g', -1, 64), '\n')
	_, _ = t.w.Write(t.number)
}

func (t *textWriter) summary(name, labels string, d digest) {
	for i, q := range quantiles {
		t.value(name, "", labels, q.label, d.quantiles[i])
	}
	t.value(name, "_sum", labels, "", d.sum)
	t.value(name, "_count", labels, "", float64(d.count))
}
