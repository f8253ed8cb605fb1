package structs

import (
	"regexp"
	"strconv"
	"strings"
)

// hasReference reports whether a value contains ${…}, which only a node can fill in.
func hasReference(s string) bool { return strings.Contains(s, "${") }

func validateConstraints(r reporter, constraints []*Constraint) {
	for i, c := range constraints {
		in := r.in("constraint", "", i)
		switch c.Operand {
		case ConstraintDistinctHosts:
			if c.RTarget != "" {
				if _, err := strconv.ParseBool(c.RTarget); err != nil {
					in.addf("value", `must be "true" or "false" with distinct_hosts, not %q`, clip(c.RTarget))
				}
			}
			continue
		case ConstraintDistinctProperty:
			if n, err := strconv.ParseUint(c.RTarget, 10, 32); c.RTarget != "" && (err != nil || n == 0) {
				in.addf("value", "must be how many instances may share a value, from 1, with distinct_property, not %q",
					clip(c.RTarget))
			}
		case ConstraintAttributeIsSet, ConstraintAttributeNotSet:
			if c.RTarget != "" {
				in.addf("value", "must not be stated with %s", c.Operand)
			}
		default:
			validateOperand(in, c.Operand, c.RTarget)
		}
		in.need("attribute", c.LTarget)
	}
}

func validateAffinities(r reporter, affinities []*Affinity) {
	for i, a := range affinities {
		in := r.in("affinity", "", i)
		validateOperand(in, a.Operand, a.RTarget)
		in.need("attribute", a.LTarget)
		if a.Weight == 0 {
			in.addf("weight", "must not be 0: from -100 (avoid) to 100 (prefer)")
		}
	}
}

// validateOperand checks the right side of an operator that reads it.
func validateOperand(r reporter, operand, value string) {
	switch operand {
	case ConstraintRegex:
		if value == "" {
			r.addf("value", "must be a regular expression with regexp")
			return
		}
		if hasReference(value) {
			return
		}
		if _, err := regexp.Compile(value); err != nil {
			r.addf("value", "%q is no regular expression: %v", clip(value), err)
		}
	case ConstraintVersion, ConstraintSemver:
		if hasReference(value) {
			return
		}
		if !isVersionConstraint(value) {
			r.addf("value", `must be a version constraint such as ">= 1.2, < 2.0" with %s, not %q`, operand, clip(value))
		}
	case ConstraintSetContains, ConstraintSetContainsAll, ConstraintSetContainsAny:
		if value == "" {
			r.addf("value", "must list what to look for, between commas, with %s", operand)
		}
	case ConstraintLess, ConstraintLessEqual, ConstraintGreater, ConstraintGreaterEqual:
		if value == "" {
			r.addf("value", "must be stated with %s", operand)
		}
	}
}

// versionConstraint is one comparison with a version.
var versionConstraint = compiled(`^\s*(=|!=|>|<|>=|<=|~>)?\s*v?[0-9]+(\.[0-9]+)*(-?[0-9A-Za-z~.-]+)?(\+[0-9A-Za-z~.-]+)?\s*$`)

func isVersionConstraint(s string) bool {
	for one := range strings.SplitSeq(s, ",") {
		if !versionConstraint.MatchString(one) {
			return false
		}
	}
	return true
}

func validateSpreads(r reporter, spreads []*Spread) {
	for i, s := range spreads {
		in := r.in("spread", "", i)
		in.need("attribute", s.Attribute)
		sum := 0
		values := make([]string, len(s.SpreadTarget))
		for i, t := range s.SpreadTarget {
			sum += t.Percent
			values[i] = t.Value
			in.in("target", t.Value, i).need("value", t.Value)
		}
		in.unique("target", "targets", values)
		if sum > 100 {
			in.addf("target", "the percentages must not sum to more than 100, not %d", sum)
		}
	}
}
