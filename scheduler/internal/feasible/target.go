package feasible

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Resolver returns the value of a target such as ${attr.kernel.name}; what is not of that form is
// itself. false: there is no such value.
type Resolver func(target string) (string, bool)

// NodeResolver resolves against a node.
func NodeResolver(n *structs.Node) Resolver {
	return func(target string) (string, bool) {
		name, isTarget := targetName(target)
		if !isTarget {
			return target, true
		}
		v, ok := n.Variable(name)
		return v, ok && (v != "" || name != "node.class") // a node without a class has none to compare with
	}
}

// DeviceResolver resolves against a group of devices of a node.
func DeviceResolver(d *structs.NodeDeviceResource) Resolver {
	return func(target string) (string, bool) {
		name, isTarget := targetName(target)
		if !isTarget {
			return target, true
		}
		if key, found := strings.CutPrefix(name, "device.attr."); found {
			a, ok := d.Attributes[key]
			return a.String(), ok
		}
		switch name {
		case "device.vendor":
			return d.Vendor, true
		case "device.type":
			return d.Type, true
		case "device.model":
			return d.Name, true
		case "device.ids":
			ids := make([]string, 0, len(d.Instances))
			for _, one := range d.Instances {
				ids = append(ids, one.ID)
			}
			return strings.Join(ids, ","), true
		}
		return "", false
	}
}

// targetName takes the name out of ${name}.
func targetName(target string) (string, bool) {
	if !strings.HasPrefix(target, "${") || !strings.HasSuffix(target, "}") {
		return "", false
	}
	return target[2 : len(target)-1], true
}

// IsUnique reports whether a target may differ between nodes of one class.
func IsUnique(target string) bool {
	name, isTarget := targetName(target)
	return isTarget && (strings.HasPrefix(name, "attr.unique.") || strings.HasPrefix(name, "meta.unique.") ||
		strings.HasPrefix(name, "node.unique."))
}

// IsMeta reports whether a target may differ between nodes of one family.
func IsMeta(target string) bool {
	name, isTarget := targetName(target)
	return isTarget && strings.HasPrefix(name, "meta.")
}

// Matcher decides constraints and affinities. It remembers what it compiled.
type Matcher struct {
	patterns map[string]*regexp.Regexp // nil: cannot be compiled
	rules    map[string]versionRules   // by strictness and text
}

// NewMatcher returns one that remembers nothing.
func NewMatcher() *Matcher {
	return &Matcher{}
}

// Match decides one comparison. A missing side meets only "!=" (if the other is
// there) and is_not_set, as in Nomad. distinct_* are not decided here: they hold.
func (m *Matcher) Match(resolve Resolver, left, operand, right string) bool {
	l, hasL := resolve(left)
	r, hasR := resolve(right)
	switch operand {
	case structs.ConstraintAttributeIsSet:
		return hasL
	case structs.ConstraintAttributeNotSet:
		return !hasL
	case structs.ConstraintDistinctHosts, structs.ConstraintDistinctProperty:
		return true
	case structs.ConstraintNotEqual, "not":
		return hasL != hasR || l != r
	}
	if !hasL || !hasR {
		return false
	}
	switch operand {
	case structs.ConstraintEqual, "==", "is", "":
		return l == r
	case structs.ConstraintLess:
		return compareValues(l, r) < 0
	case structs.ConstraintLessEqual:
		return compareValues(l, r) <= 0
	case structs.ConstraintGreater:
		return compareValues(l, r) > 0
	case structs.ConstraintGreaterEqual:
		return compareValues(l, r) >= 0
	case structs.ConstraintRegex:
		p := m.pattern(r)
		return p != nil && p.MatchString(l)
	case structs.ConstraintVersion:
		return m.versionRules(r, false).satisfied(l)
	case structs.ConstraintSemver:
		return m.versionRules(r, true).satisfied(l)
	case structs.ConstraintSetContains, structs.ConstraintSetContainsAll:
		have := splitSet(l)
		return !slices.ContainsFunc(splitSet(r), func(want string) bool { return !slices.Contains(have, want) })
	case structs.ConstraintSetContainsAny:
		have := splitSet(l)
		return slices.ContainsFunc(splitSet(r), func(want string) bool { return slices.Contains(have, want) })
	}
	return false
}

func splitSet(s string) []string {
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

func (m *Matcher) pattern(s string) *regexp.Regexp {
	p, known := m.patterns[s]
	if !known {
		p, _ = regexp.Compile(s) // a pattern that is none matches nothing; Validate refuses it before
		world.PutInto(&m.patterns, s, p)
	}
	return p
}

func (m *Matcher) versionRules(s string, strict bool) versionRules {
	key := strconv.FormatBool(strict) + s
	rules, known := m.rules[key]
	if !known {
		rules = parseVersionRules(s, strict) // as with patterns
		world.PutInto(&m.rules, key, rules)
	}
	return rules
}

// compareValues compares as numbers if both are, with the unit that device
// attributes may have; else as text.
func compareValues(a, b string) int {
	x, unitA, okA := parseQuantity(a)
	y, unitB, okB := parseQuantity(b)
	if okA && okB && (unitA == nil) == (unitB == nil) {
		if unitA == nil || unitA.kind == unitB.kind {
			return cmp.Compare(x, y)
		}
	}
	return strings.Compare(a, b)
}

// unit is what a quantity is measured in, as a multiple of its kind's base.
type unit struct {
	kind  string
	times float64
}

var units = map[string]unit{
	"B": {"byte", 1}, "kB": {"byte", 1e3}, "KB": {"byte", 1e3}, "MB": {"byte", 1e6}, "GB": {"byte", 1e9}, "TB": {"byte", 1e12},
	"KiB": {"byte", 1 << 10}, "MiB": {"byte", 1 << 20}, "GiB": {"byte", 1 << 30}, "TiB": {"byte", 1 << 40},
	"B/s": {"byte/s", 1}, "kB/s": {"byte/s", 1e3}, "MB/s": {"byte/s", 1e6}, "GB/s": {"byte/s", 1e9},
	"KiB/s": {"byte/s", 1 << 10}, "MiB/s": {"byte/s", 1 << 20}, "GiB/s": {"byte/s", 1 << 30},
	"Hz": {"Hz", 1}, "kHz": {"Hz", 1e3}, "MHz": {"Hz", 1e6}, "GHz": {"Hz", 1e9},
	"mW": {"W", 1e-3}, "W": {"W", 1}, "kW": {"W", 1e3}, "MW": {"W", 1e6}, "GW": {"W", 1e9},
}

func parseQuantity(s string) (float64, *unit, bool) {
	s = strings.TrimSpace(s)
	end := len(s)
	for end > 0 && (s[end-1] > '9' || s[end-1] == '/') {
		end--
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(s[:end]), 64)
	if err != nil {
		return 0, nil, false
	}
	if end == len(s) {
		return n, nil, true
	}
	u, known := units[s[end:]]
	return n * u.times, &u, known
}
