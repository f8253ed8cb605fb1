package taskenv

import (
	"slices"
	"strings"
)

// ofNode is what ${node.…}, ${attr.…} and ${meta.…} stand for.
func (e *Env) ofNode(name string) (string, bool) {
	n := e.node
	if n == nil {
		return "", false
	}
	if name == "node.region" {
		return e.region, true
	}
	return n.Variable(name)
}

// lookup resolves one reference.
func (e *Env) lookup(name string) (string, bool) {
	name = strings.TrimSpace(name)
	if v, ok := e.vars[name]; ok {
		return v, true
	}
	if v, ok := e.ofNode(name); ok {
		return v, true
	}
	if key, ok := strings.CutPrefix(name, "env."); ok {
		v, ok := e.vars[key]
		return v, ok
	}
	// env["NAME"], meta["key"] and attr["key"], which HCL writes alike.
	if i := strings.IndexByte(name, '['); i > 0 && strings.HasSuffix(name, `"]`) && strings.HasPrefix(name[i:], `["`) {
		kind, key := name[:i], name[i+2:len(name)-2]
		if kind == "env" {
			v, ok := e.vars[key]
			return v, ok
		}
		return e.ofNode(kind + "." + key)
	}
	return "", false
}

// Replace fills in the references in s. One that stands for nothing stays as it
// is, so that a shell's own ${VAR} reaches the shell.
func (e *Env) Replace(s string) string {
	if !strings.Contains(s, "${") {
		return s
	}
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			break
		}
		j := strings.IndexByte(s[i:], '}')
		if j < 0 {
			break
		}
		ref := s[i+2 : i+j]
		if k := strings.LastIndex(ref, "${"); k >= 0 { // "${a ${b}": the inner one counts
			b.WriteString(s[:i+2+k])
			s = s[i+2+k:]
			continue
		}
		b.WriteString(s[:i])
		if v, ok := e.lookup(ref); ok {
			b.WriteString(v)
		} else {
			b.WriteString(s[i : i+j+1])
		}
		s = s[i+j+1:]
	}
	b.WriteString(s)
	return b.String()
}

// ReplaceAny fills in the references in all strings within v: a value of a
// driver's config block. Keys stay as they are, and v is not changed.
func (e *Env) ReplaceAny(v any) any {
	switch v := v.(type) {
	case string:
		return e.Replace(v)
	case []string:
		out := make([]string, len(v))
		for i, s := range v {
			out[i] = e.Replace(s)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = e.ReplaceAny(x)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = e.ReplaceAny(x)
		}
		return out
	case map[string]string:
		out := make(map[string]string, len(v))
		for k, x := range v {
			out[k] = e.Replace(x)
		}
		return out
	}
	return v
}

// ReplaceConfig fills in a driver's config block.
func (e *Env) ReplaceConfig(config map[string]any) map[string]any {
	out := make(map[string]any, len(config))
	for k, v := range config {
		out[k] = e.ReplaceAny(v)
	}
	return out
}

// Refers reports whether a driver's config block may contain references.
func Refers(config map[string]any) bool {
	for _, v := range config {
		if refers(v) {
			return true
		}
	}
	return false
}

func refers(v any) bool {
	switch v := v.(type) {
	case nil, bool, int, int64, uint64, float64:
		return false
	case string:
		return strings.Contains(v, "${")
	case []any:
		return slices.ContainsFunc(v, refers)
	case map[string]any:
		return Refers(v)
	}
	return true // whatever else: Env.ReplaceAny knows
}
