package feasible

import (
	"slices"
	"strings"

	"github.com/hashicorp/go-version"
)

// versionRules are the terms of a version constraint, as ">= 1.2, < 2", which must all hold. The loose form is that of
// go-version: any number of parts, a leading "v", and an ordering rule takes a pre-release only if it names one of the same numbers
// itself, so that ">= 1.2" does not take 1.3-beta. The strict one is of Semantic Versions 2.0: three parts, ordered as that states, and no "~>".
type versionRules struct {
	loose  version.Constraints
	strict []versionTerm
}

// versionTerm is one term of a strict constraint.
type versionTerm struct {
	op string
	v  *version.Version
}

// parseVersionRules reads terms parted by commas. A text that is no constraint has no terms.
func parseVersionRules(s string, strict bool) (rules versionRules) {
	if !strict {
		rules.loose, _ = version.NewConstraint(strings.ReplaceAll(s, "==", "="))
		return rules
	}
	for term := range strings.SplitSeq(s, ",") {
		text := strings.TrimLeft(strings.TrimSpace(term), "<>=!")
		v := parseVersion(text, true)
		if v == nil {
			return versionRules{}
		}
		rules.strict = append(rules.strict, versionTerm{strings.TrimSuffix(strings.TrimSpace(term), text), v})
	}
	return rules
}

// parseVersion reads a version; nil: the text is none.
func parseVersion(s string, strict bool) *version.Version {
	s = strings.TrimSpace(s)
	if !strict {
		v, _ := version.NewVersion(s)
		return v
	}
	v, err := version.NewSemver(s)
	if err != nil || len(v.Segments()) != 3 {
		return nil
	}
	rest, canonical := strings.CutPrefix(s, v.Core().String()) // not where a part is missing, begins with 0, or with "v"
	if !canonical || rest != "" && rest[0] != '-' && rest[0] != '+' || slices.ContainsFunc(strings.Split(v.Prerelease(), "."), isPadded) {
		return nil
	}
	return v
}

// isPadded reports whether an identifier of a pre-release is a number with a leading zero, which Semantic Versions do not have.
func isPadded(id string) bool {
	return len(id) > 1 && id[0] == '0' && strings.Trim(id, "0123456789") == ""
}

// satisfied reports whether a version meets every term; what cannot be read meets none.
func (r versionRules) satisfied(have string) bool {
	if len(r.strict) == 0 {
		v := parseVersion(have, false)
		return v != nil && len(r.loose) > 0 && r.loose.Check(v)
	}
	v := parseVersion(have, true)
	return v != nil && !slices.ContainsFunc(r.strict, func(t versionTerm) bool { return !t.satisfied(v) })
}

func (t versionTerm) satisfied(v *version.Version) bool {
	c := v.Compare(t.v)
	switch t.op {
	case "", "=", "==":
		return c == 0
	case "!=":
		return c != 0
	case ">":
		return c > 0
	case ">=":
		return c >= 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	}
	return false
}
