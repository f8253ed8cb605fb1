package structs

import (
	"fmt"
	"strconv"
	"strings"
)

// cronField is what a place in a cron expression may hold.
type cronField struct {
	name     string
	min, max int
	words    string // names of values, in order from min
	special  string // letters that the place may hold beside
}

// A cron expression has five fields, six with the year at the end, or seven with
// the seconds at the front.
var cronFields = []cronField{
	{name: "second", max: 59},
	{name: "minute", max: 59},
	{name: "hour", max: 23},
	{name: "day of the month", min: 1, max: 31, special: "LW"},
	{name: "month", min: 1, max: 12, words: "jan feb mar apr may jun jul aug sep oct nov dec"},
	{name: "day of the week", max: 7, words: "sun mon tue wed thu fri sat", special: "L#"},
	{name: "year", min: 1970, max: 2099},
}

// checkCron returns what is wrong with a cron expression; "" if nothing is. It judges the form
// alone: when the expression fires next is for whoever has a clock.
func checkCron(spec string) string {
	switch spec {
	case "@annually", "@yearly", "@monthly", "@weekly", "@daily", "@hourly":
		return ""
	}
	fields := strings.Fields(spec)
	if len(fields) < 5 || len(fields) > 7 {
		return fmt.Sprintf(`it has %d fields; five to seven are allowed, such as "*/15 * * * *"`, len(fields))
	}
	first := 1
	if len(fields) == 7 {
		first = 0
	}
	for i, text := range fields {
		f := cronFields[first+i]
		for item := range strings.SplitSeq(text, ",") {
			if !f.allows(item) {
				return fmt.Sprintf("%q is no %s: %d to %d, *, a range 1-5 or a step */2 are", item, f.name, f.min, f.max)
			}
		}
	}
	return ""
}

// allows reports whether one item of a field's list has a form that it may have.
func (f cronField) allows(item string) bool {
	span, step, hasStep := strings.Cut(item, "/")
	if hasStep {
		if n, err := strconv.Atoi(step); err != nil || n < 1 || n > f.max {
			return false
		}
	}
	if span == "*" || span == "?" {
		return true
	}
	if f.special != "" && !hasStep {
		if trimmed := strings.TrimRight(strings.ToUpper(span), "LW"); trimmed != strings.ToUpper(span) {
			rest := strings.ToUpper(span)[len(trimmed):]
			return strings.Trim(rest, f.special) == "" && (trimmed == "" || f.value(trimmed) >= 0)
		}
		if day, nth, ok := strings.Cut(span, "#"); ok {
			n, err := strconv.Atoi(nth)
			return strings.Contains(f.special, "#") && err == nil && n >= 1 && n <= 5 && f.value(day) >= 0
		}
	}
	from, to, isRange := strings.Cut(span, "-")
	if !isRange {
		return f.value(from) >= 0
	}
	a, b := f.value(from), f.value(to)
	return a >= 0 && b >= a
}

// value reads a number or a name; -1 if it is neither, or out of bounds.
func (f cronField) value(s string) int {
	for i, w := range strings.Fields(f.words) {
		if strings.HasPrefix(strings.ToLower(s), w) && len(s) <= len("wednesday") {
			return f.min + i
		}
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < f.min || n > f.max {
		return -1
	}
	return n
}
