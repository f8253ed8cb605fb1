package ui

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FlagError returns an error that states what is allowed instead of what flag.FlagSet.Parse refuses: the flag that
// was most likely meant, or the kind of value. The flag package has no types for its
// errors, so they are known by their texts; another text stays as it is. nearest returns the
// known word that a wrong one meant, or "".
func FlagError(fs *flag.FlagSet, err error, nearest func(word string, known []string) string) error {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return err
	}
	text := err.Error()
	if name, found := strings.CutPrefix(text, "flag provided but not defined: -"); found {
		if _, err := strconv.ParseFloat(name, 64); err == nil && name[0] >= '0' && name[0] <= '9' { // none of the words that are numbers too
			return fmt.Errorf("there is no flag -%s; a number that is meant, such as a count, must be 0 or more", name)
		}
		near := nearFlag(fs, name, nearest)
		if near == "" {
			return fmt.Errorf("there is no flag -%s", name)
		}
		return fmt.Errorf("there is no flag -%s; did you mean -%s?", name, near)
	}
	if name, found := strings.CutPrefix(text, "flag needs an argument: -"); found {
		return fmt.Errorf("-%s: needs a value; write -%s=VALUE", name, name)
	}
	if !strings.HasPrefix(text, "invalid ") {
		return err
	}
	var named *flag.Flag
	at := len(text)
	fs.VisitAll(func(f *flag.Flag) { // the first that is named: what follows it is why
		if i := strings.Index(text, " -"+f.Name+": "); i >= 0 && i < at {
			named, at = f, i
		}
	})
	if named == nil {
		return err
	}
	before, why, _ := strings.Cut(text, " -"+named.Name+": ")
	_, given, _ := strings.Cut(before, "\"")
	given = given[:max(0, strings.LastIndex(given, "\""))]
	why = strings.TrimPrefix(why, fmt.Sprintf("%q: ", given)) // printed already
	if must := kindOf(named.Value); must != "" {
		why = must
	}
	return fmt.Errorf("-%s \"%s\": %s", named.Name, given, why)
}

// nearFlag is the flag that a wrong name meant; empty: none is near.
func nearFlag(fs *flag.FlagSet, name string, nearest func(string, []string) string) string {
	var known, longer []string
	fs.VisitAll(func(f *flag.Flag) {
		known = append(known, f.Name)
		if strings.HasPrefix(f.Name, name) {
			longer = append(longer, f.Name)
		}
	})
	if len(longer) == 1 {
		return longer[0]
	}
	// Words are compared with _ for -, as in job files.
	for i := range known {
		known[i] = strings.ReplaceAll(known[i], "-", "_")
	}
	slices.Sort(known)
	return strings.ReplaceAll(nearest(name, known), "_", "-")
}

// kindOf returns which values a flag takes; empty: its own error does.
func kindOf(v flag.Value) string {
	if b, ok := v.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
		return "must be true or false"
	}
	g, ok := v.(flag.Getter)
	if !ok {
		return ""
	}
	switch g.Get().(type) {
	case time.Duration:
		return "must be a time such as 30s, 5m or 1h30m"
	case int, int64, uint, uint64:
		return "must be a whole number"
	case float64:
		return "must be a number"
	}
	return ""
}
