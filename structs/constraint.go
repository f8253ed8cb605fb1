package structs

// Operators of constraints and affinities. The comparisons are also written
// "==", "is", "not", and are lexical unless both sides are numbers.
const (
	ConstraintEqual            = "="
	ConstraintNotEqual         = "!="
	ConstraintLess             = "<"
	ConstraintLessEqual        = "<="
	ConstraintGreater          = ">"
	ConstraintGreaterEqual     = ">="
	ConstraintDistinctProperty = "distinct_property"
	ConstraintDistinctHosts    = "distinct_hosts"
	ConstraintRegex            = "regexp"
	ConstraintVersion          = "version"
	ConstraintSemver           = "semver"
	ConstraintSetContains      = "set_contains"
	ConstraintSetContainsAll   = "set_contains_all"
	ConstraintSetContainsAny   = "set_contains_any"
	ConstraintAttributeIsSet   = "is_set"
	ConstraintAttributeNotSet  = "is_not_set"
)

// Constraint refuses nodes (or devices) that do not meet it.
type Constraint struct {
	LTarget string `hcl:"attribute"`                                                                                                                                                               // left side, such as ${attr.kernel.name}
	RTarget string `hcl:"value"`                                                                                                                                                                   // right side
	Operand string `hcl:"operator" check:"oneof==|==|is|!=|not|<|<=|>|>=|distinct_property|distinct_hosts|regexp|version|semver|set_contains|set_contains_all|set_contains_any|is_set|is_not_set"` // one of the Constraint constants; "=" if not stated
}

// Shorthand returns the field that an operator's name, written as an attribute, fills.
func (*Constraint) Shorthand(name string) string {
	switch name {
	case ConstraintDistinctProperty:
		return "attribute"
	case ConstraintDistinctHosts:
		return "value"
	}
	return (*Affinity)(nil).Shorthand(name)
}

// Shorthand returns the field that an operator's name, written as an attribute, fills.
func (*Affinity) Shorthand(name string) string {
	switch name {
	case ConstraintRegex, ConstraintVersion, ConstraintSemver,
		ConstraintSetContains, ConstraintSetContainsAll, ConstraintSetContainsAny:
		return "value"
	}
	return ""
}

// DefaultWeight is that of an affinity or spread that states none.
const DefaultWeight = 50

// Affinity prefers nodes (or devices), or avoids them if Weight is negative.
type Affinity struct {
	LTarget string `hcl:"attribute"`                                                                                                            // as in a constraint
	RTarget string `hcl:"value"`                                                                                                                // as in a constraint
	Operand string `hcl:"operator" check:"oneof==|==|is|!=|not|<|<=|>|>=|regexp|version|semver|set_contains|set_contains_all|set_contains_any"` // as in a constraint
	Weight  int    `hcl:"weight" check:"min=-100,max=100"`                                                                                      // how much it counts; below 0, nodes that meet it are avoided; default: 50
}

// Spread spreads a group's instances over the values of an attribute.
type Spread struct {
	Attribute    string          `hcl:"attribute"`                    // over whose values instances spread, such as ${node.datacenter}
	Weight       int             `hcl:"weight" check:"min=0,max=100"` // how much it counts; default: 50
	SpreadTarget []*SpreadTarget `hcl:"target,block"`
}

// SpreadTarget is how many percent of the instances one value should get.
type SpreadTarget struct {
	Value   string `hcl:"value,label"`                   // a value of the attribute
	Percent int    `hcl:"percent" check:"min=0,max=100"` // of the instances
}

// SetDefaults fills what a spread has when it states nothing.
func (s *Spread) SetDefaults() { s.Weight = DefaultWeight }
