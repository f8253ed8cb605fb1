package feasible

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// version is a version number: 1.2.3-beta.1+build. Build metadata is left out.
type version struct {
	numbers []uint64 // as many as were written
	pre     string   // after the "-"; empty: a release
}

// parseVersion reads a version. The loose form allows a leading "v" and any
// number of parts; the strict one is a Semantic Version 2.0: three parts, no "v".
func parseVersion(s string, strict bool) (v version, ok bool) {
	s = strings.TrimSpace(s)
	if !strict {
		s = strings.TrimPrefix(s, "v")
	}
	s, build, hasBuild := strings.Cut(s, "+")
	core, pre, hasPre := strings.Cut(s, "-")
	if strict && ((hasBuild && !goodIdentifiers(build, false)) || (hasPre && !goodIdentifiers(pre, true))) {
		return v, false
	}
	if (hasPre && pre == "") || (hasBuild && build == "") {
		return v, false
	}
	for part := range strings.SplitSeq(core, ".") {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil || part[0] == '+' || (strict && len(part) > 1 && part[0] == '0') {
			return version{}, false
		}
		v.numbers = append(v.numbers, n)
	}
	v.pre = pre
	return v, !strict || len(v.numbers) == 3
}

// goodIdentifiers checks dot-separated identifiers of Semantic Versioning.
func goodIdentifiers(s string, numbersWithoutZeros bool) bool {
	for id := range strings.SplitSeq(s, ".") {
		if id == "" {
			return false
		}
		digits := true
		for _, c := range []byte(id) {
			isDigit := c >= '0' && c <= '9'
			digits = digits && isDigit
			if !isDigit && c != '-' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
				return false
			}
		}
		if digits && numbersWithoutZeros && len(id) > 1 && id[0] == '0' {
			return false
		}
	}
	return true
}

// part is number i; 0 where none was written.
func (v version) part(i int) uint64 {
	if i < len(v.numbers) {
		return v.numbers[i]
	}
	return 0
}

func (v version) compareNumbers(o version) int {
	for i := range max(len(v.numbers), len(o.numbers)) {
		if c := cmp.Compare(v.part(i), o.part(i)); c != 0 {
			return c
		}
	}
	return 0
}

// compare orders versions as Semantic Versioning does: a pre-release stands
// before its release, and its identifiers are compared one by one.
func (v version) compare(o version) int {
	if c := v.compareNumbers(o); c != 0 {
		return c
	}
	switch {
	case v.pre == o.pre:
		return 0
	case v.pre == "":
		return 1
	case o.pre == "":
		return -1
	}
	return slices.CompareFunc(strings.Split(v.pre, "."), strings.Split(o.pre, "."), compareIdentifiers)
}

func compareIdentifiers(a, b string) int {
	x, errA := strconv.ParseUint(a, 10, 64)
	y, errB := strconv.ParseUint(b, 10, 64)
	switch {
	case errA == nil && errB == nil:
		return cmp.Compare(x, y)
	case errA == nil:
		return -1 // numbers stand before words
	case errB == nil:
		return 1
	}
	return strings.Compare(a, b)
}

// versionRule is one term of a version constraint, such as ">= 1.2".
type versionRule struct {
	op string
	v  version
}

// versionOps, the longer before those that they begin with.
var versionOps = []string{"~>", ">=", "<=", "!=", "==", "=", ">", "<"}

// parseVersionRules reads terms parted by commas; all must hold. The strict form
// is of Semantic Versions, and has no "~>".
func parseVersionRules(s string, strict bool) (rules []versionRule, ok bool) {
	for term := range strings.SplitSeq(s, ",") {
		term = strings.TrimSpace(term)
		rule := versionRule{op: "="}
		for _, op := range versionOps {
			if rest, found := strings.CutPrefix(term, op); found {
				rule.op, term = op, rest
				break
			}
		}
		if rule.v, ok = parseVersion(term, strict); !ok || (strict && rule.op == "~>") {
			return nil, false
		}
		rules = append(rules, rule)
	}
	return rules, len(rules) > 0
}

// satisfied reports whether a version meets the rule. In the loose form an ordering rule takes a
// pre-release only if it names one of the same numbers itself, so that ">= 1.2" does not take
// 1.3-beta.
func (r versionRule) satisfied(v version, strict bool) bool {
	c := v.compare(r.v)
	switch r.op {
	case "=", "==":
		return c == 0
	case "!=":
		return c != 0
	}
	if !strict && !r.takesPre(v) {
		return false
	}
	switch r.op {
	case ">":
		return c > 0
	case ">=":
		return c >= 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	}
	// "~> 1.2.3" is at least that, with all numbers but the last one equal.
	if c < 0 {
		return false
	}
	for i := range len(r.v.numbers) - 1 {
		if v.part(i) != r.v.numbers[i] {
			return false
		}
	}
	return true
}

func (r versionRule) takesPre(v version) bool {
	if v.pre == "" {
		return true
	}
	return r.v.pre != "" && v.compareNumbers(r.v) == 0
}

// versionSatisfied reports whether a version meets every term of a constraint; what cannot be read
// meets none.
func versionSatisfied(have string, rules []versionRule, strict bool) bool {
	v, ok := parseVersion(have, strict)
	if !ok || len(rules) == 0 {
		return false
	}
	for _, r := range rules {
		if !r.satisfied(v, strict) {
			return false
		}
	}
	return true
}
