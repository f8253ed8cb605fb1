package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config reads a task's config block field by field. Job files come as HCL or as
// JSON, and their values may contain interpolations, so a number may arrive as any
// of Go's number types or as text; Config takes each where it means one thing.
// Errors are gathered: Err has all of them at once.
//
//	c := driver.ReadConfig(task.Config)
//	command := c.Required("command")
//	args := c.Strings("args")
//	if err := c.Err(); err != nil { … }
//
// Err also refuses every field that was never read.
type Config struct {
	values map[string]any
	known  []string
	errs   []error
}

// ReadConfig begins to read values, which it does not change.
func ReadConfig(values map[string]any) *Config {
	return &Config{values: values, known: make([]string, 0, usualFields)}
}

// usualFields is about how many fields a driver has.
const usualFields = 24

// Err is everything that was wrong so far, or nil. Called once all fields have
// been read.
func (c *Config) Err() error {
	var unknown []error
	for name := range c.values {
		if !slices.Contains(c.known, name) {
			unknown = append(unknown, fmt.Errorf("config: %q is not a field of this driver; it has %s", name, strings.Join(c.known, ", ")))
		}
	}
	if len(c.errs)+len(unknown) == 0 {
		return nil
	}
	slices.SortFunc(unknown, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(append(slices.Clone(c.errs), unknown...)...)
}

// Fail adds an error about a field.
func (c *Config) Fail(name, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("config: %s: %s", name, fmt.Sprintf(format, args...)))
}

func (c *Config) get(name string) (any, bool) {
	if !slices.Contains(c.known, name) {
		c.known = append(c.known, name)
	}
	v, ok := c.values[name]
	return v, ok && v != nil
}

// Ignore accepts fields of any value.
func (c *Config) Ignore(names ...string) {
	for _, n := range names {
		c.get(n)
	}
}

// String reads a text; absent is "". Numbers and bools are taken as written.
func (c *Config) String(name string) string {
	v, ok := c.get(name)
	if !ok {
		return ""
	}
	s, ok := text(v)
	if !ok {
		c.Fail(name, "must be a string, not %s", kind(v))
	}
	return s
}

// Required reads a text that must be there and not empty.
func (c *Config) Required(name string) string {
	v, ok := c.get(name)
	if !ok || v == "" {
		c.Fail(name, "must be given: a string that is not empty")
		return ""
	}
	return c.String(name)
}

// Strings reads a list of texts; absent is nil.
func (c *Config) Strings(name string) []string {
	v, ok := c.get(name)
	if !ok {
		return nil
	}
	switch list := v.(type) {
	case []string:
		return slices.Clone(list)
	case []any:
		out := make([]string, 0, len(list))
		for i, e := range list {
			s, ok := text(e)
			if !ok {
				c.Fail(name, "element %d must be a string, not %s", i, kind(e))
			}
			out = append(out, s)
		}
		return out
	}
	c.Fail(name, "must be a list of strings, not %s", kind(v))
	return nil
}

// StringMap reads a map of texts; absent is nil. A block that may be repeated
// arrives as a list of maps: they are merged, later ones winning.
func (c *Config) StringMap(name string) map[string]string {
	v, ok := c.get(name)
	if !ok {
		return nil
	}
	out := map[string]string{}
	add := func(v any) {
		m, ok := v.(map[string]any)
		if !ok {
			c.Fail(name, "must be a map of strings, not %s", kind(v))
		}
		for k, e := range m {
			s, ok := text(e)
			if !ok {
				c.Fail(name, "%q must be a string, not %s", k, kind(e))
			}
			out[k] = s
		}
	}
	switch m := v.(type) {
	case map[string]string:
		for k, s := range m {
			out[k] = s
		}
	case []any:
		for _, e := range m {
			add(e)
		}
	case []map[string]any:
		for _, e := range m {
			add(e)
		}
	default:
		add(v)
	}
	return out
}

// Int reads a whole number; absent is 0.
func (c *Config) Int(name string) int {
	v, ok := c.get(name)
	if !ok || interpolated(v) {
		return 0
	}
	var f float64
	var err error
	switch n := v.(type) {
	case int:
		return n
	case int64:
		f = float64(n)
	case uint64:
		f = float64(n)
	case float64:
		f = n
	case json.Number:
		f, err = n.Float64()
	case string:
		f, err = strconv.ParseFloat(n, 64)
	default:
		err = strconv.ErrSyntax
	}
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		c.Fail(name, "must be a whole number, not %s", kind(v))
		return 0
	}
	return int(f)
}

// Bool reads a truth value; absent is false.
func (c *Config) Bool(name string) bool {
	v, ok := c.get(name)
	if !ok || interpolated(v) {
		return false
	}
	switch b := v.(type) {
	case bool:
		return b
	case string:
		if t, err := strconv.ParseBool(b); err == nil {
			return t
		}
	}
	c.Fail(name, "must be true or false, not %s", kind(v))
	return false
}

// Duration reads a time span, as "1m30s"; absent is 0. It must not be negative.
func (c *Config) Duration(name string) time.Duration {
	v, ok := c.get(name)
	if !ok || v == "" || interpolated(v) {
		return 0
	}
	if s, ok := v.(string); ok {
		if d, err := time.ParseDuration(s); err == nil && d >= 0 {
			return d
		}
	}
	c.Fail(name, "must be a duration such as \"30s\" or \"1m30s\", not %s", kind(v))
	return 0
}

// interpolated reports whether v is text that will be known on the node only.
func interpolated(v any) bool {
	s, ok := v.(string)
	return ok && strings.Contains(s, "${")
}

// text writes a plain value as a string.
func text(v any) (string, bool) {
	switch s := v.(type) {
	case string:
		return s, true
	case json.Number:
		return s.String(), true
	case bool, int, int64, uint64:
		return fmt.Sprint(s), true
	case float64:
		return strconv.FormatFloat(s, 'f', -1, 64), true
	}
	return "", false
}

// kind describes a value in an error.
func kind(v any) string {
	switch s := v.(type) {
	case nil:
		return "null"
	case []any, []string:
		return "a list"
	case map[string]any, map[string]string, []map[string]any:
		return "a map"
	case string:
		if len(s) > 40 {
			s = s[:40] + "…"
		}
		return strconv.Quote(s)
	}
	return fmt.Sprint(v)
}
