package telemetry

import (
	"fmt"
	"strings"
)

// Kind is what the values of a family are.
type Kind string

// The kinds of families.
const (
	Gauge   Kind = "gauge"   // a value that rises and falls
	Counter Kind = "counter" // a value that only rises
	Summary Kind = "summary" // quantiles, sum and count of observations
)

// Prefix begins every name.
const Prefix = "nomad."

// Family is a metric: series of one name that differ by their labels.
type Family struct {
	Name   string // without Prefix, with dots
	Kind   Kind
	Unit   string
	Labels string // names separated by commas, beside host; one that ends with a question mark is not on every series
	Help   string
}

// Prometheus returns the name as Prometheus has it.
func (f *Family) Prometheus() string { return PrometheusName(Prefix + f.Name) }

// Key returns the name as go-metrics takes it, without Prefix.
func (f *Family) Key() []string { return strings.Split(f.Name, ".") }

// PrometheusName returns a name with dots as Prometheus has it.
func PrometheusName(dotted string) string { return forbidden.Replace(dotted) }

var forbidden = strings.NewReplacer(" ", "_", ".", "_", "=", "_", "-", "_", "/", "_")

var byName = func() map[string]*Family {
	out := make(map[string]*Family, len(Families))
	for i := range Families {
		f := &Families[i]
		if out[f.Name] != nil {
			panic("telemetry: two families are named " + f.Name)
		}
		out[f.Name] = f
	}
	return out
}()

// Named returns the family of that name. It panics if the table has none: it is for variables of packages.
func Named(name string) *Family {
	f := byName[name]
	if f == nil {
		panic(fmt.Sprintf("telemetry: no family is named %q: add it to the table", name))
	}
	return f
}

// LabelSet is the labels of a series. It may be shared by the series of many families, and is never changed.
type LabelSet struct {
	pairs []string // name, value, name, value, …
	text  string   // as in Prometheus' text format, without braces
	zero  bool     // see FromZero
}

// Labels returns a new set of labels, given name, value, name, value, and so on.
func Labels(pairs ...string) *LabelSet {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(pairs[i])
		b.WriteString(`="`)
		_, _ = escaper.WriteString(&b, strings.ToValidUTF8(pairs[i+1], "\uFFFD"))
		b.WriteByte('"')
	}
	return &LabelSet{pairs: pairs, text: b.String()}
}

var escaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
var helpEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`)

// With returns the labels with more of them.
func (l *LabelSet) With(pairs ...string) *LabelSet {
	return Labels(append(append(make([]string, 0, len(l.pairs)+len(pairs)), l.pairs...), pairs...)...)
}

// FromZero returns the same labels for counters that were zero when the agent started, or later, and are shown without a gap as
// long as there are any. Of other counters with labels, what was counted before they are seen is sent to nobody.
func (l *LabelSet) FromZero() *LabelSet {
	out := *l
	out.zero = true
	return &out
}

// IsFromZero reports whether l is of FromZero.
func (l *LabelSet) IsFromZero() bool { return l != nil && l.zero }

// Text returns the labels as Prometheus' text format has them, without braces. Sets of the same labels, in the same order, have
// the same text.
func (l *LabelSet) Text() string {
	if l == nil {
		return ""
	}
	return l.text
}

// Each calls f with every label.
func (l *LabelSet) Each(f func(name, value string)) {
	if l == nil {
		return
	}
	for i := 0; i+1 < len(l.pairs); i += 2 {
		f(l.pairs[i], l.pairs[i+1])
	}
}
