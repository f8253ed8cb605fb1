package reference

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nomadish/nomadish/internal/doccomment"
)

// Writer writes pages of reference about struct types that files or messages are decoded into. What a setting means is what its doc comment states.
type Writer struct {
	source *doccomment.Source
	err    error // the first
	gaps   []string
}

// NewWriter returns a Writer of pages about the types of a module's source.
func NewWriter(source *doccomment.Source) *Writer { return &Writer{source: source} }

// Err returns the first error of what was written: the source could not be read, or something has no meaning stated.
func (w *Writer) Err() error {
	if w.err == nil && len(w.gaps) > 0 {
		return fmt.Errorf("%d fields have no doc comment that states their meaning:\n%s", len(w.gaps), strings.Join(w.gaps, "\n"))
	}
	return w.err
}

// meaning is what a doc comment states about a field.
type meaning struct {
	text   string
	normal string // the default as the text states it; empty: it states none
}

var (
	ours         = regexp.MustCompile(` ?\(ours\)|^Ours: `)
	defaultWords = regexp.MustCompile(`(?:^|[;,.] ?)default:? ("[^"]*"|[^;.]*[^;. ])`)
	identifier   = regexp.MustCompile(`\b(?:structs\.)?[A-Z]\w*\b`)
	quoted       = regexp.MustCompile("`[^`]*`|-dev\\b|/(?:v1|debug)/[\\w/]+|\\b[a-z]+(?:[_.][a-z0-9]+)+\\b")
	afterwards   = regexp.MustCompile(` After \[Job\.Canonicalize\][^.]*\.`)
	constants    = regexp.MustCompile(`[Oo]ne of the \w+ constants[;.]? ?`)
	otherwise    = regexp.MustCompile(`;? ?"?[\w. ]+"? if not stated[;.]?`)
	compound     = regexp.MustCompile(`[a-z0-9][A-Z]`)
	reference    = regexp.MustCompile(`;? ?[Ss]ee \[?[A-Z][\w.]+\]?\.?$| \((?:docs/)?semantics[^)]*\)`)
)

// fieldMeaning returns what the comment of the field of t at an index states, with names in the place of the identifiers of its fields. where is
// the field for people.
func (w *Writer) fieldMeaning(t reflect.Type, index []int, names map[string]string, where string) meaning {
	about, err := w.source.Field(t, index)
	if err != nil && w.err == nil {
		w.err = err
	}
	if about == "" {
		w.gaps = append(w.gaps, where)
	}
	own := t.FieldByIndex(index).Name
	var m meaning
	text := constants.ReplaceAllString(reference.ReplaceAllString(ours.ReplaceAllString(about, ""), ""), "")
	text = otherwise.ReplaceAllString(text, "")
	if found := defaultWords.FindStringSubmatchIndex(text); found != nil {
		m.normal = text[found[2]:found[3]]
		text = text[:found[0]] + text[found[1]:]
	}
	if len(doccomment.Subjects(text)) == 0 {
		text = withoutSubject(text, own)
	}
	m.text = sentence(withNames(text, names))
	m.normal = withNames(m.normal, names)
	return m
}

// withoutSubject returns a comment without the name that it begins with.
func withoutSubject(text, name string) string {
	for _, begin := range []string{name + " is ", name + " are ", name + ": ", name + " "} {
		if rest, ok := strings.CutPrefix(text, begin); ok && !strings.HasPrefix(rest, "and ") {
			return rest
		}
	}
	return text
}

// withNames returns a text with names in the place of identifiers of fields.
func withNames(text string, names map[string]string) string {
	var b strings.Builder
	end := 0
	subjects := doccomment.Subjects(text)
	for _, at := range identifier.FindAllStringIndex(text, -1) {
		word := text[at[0]:at[1]]
		name := names[word]
		if name == "" || word == strings.ToUpper(word) || at[0] == 0 && !compound.MatchString(word) && len(subjects) == 0 { // an abbreviation, or a word of English
			continue
		}
		b.WriteString(text[end:at[0]] + "`" + name + "`")
		end = at[1]
	}
	return quoted.ReplaceAllStringFunc(b.String()+text[end:], func(word string) string {
		if strings.HasPrefix(word, "`") || !strings.Contains(word, "_") && !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "/") {
			return word
		}
		return "`" + word + "`"
	})
}

// sentence returns a text that begins with a capital and ends with a full stop.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	first, n := utf8.DecodeRuneInString(text)
	text = string(unicode.ToUpper(first)) + text[n:]
	if !strings.ContainsAny(text[len(text)-1:], ".?!") {
		text += "."
	}
	return text
}

// typeText returns the comment of a type without its name.
func (w *Writer) typeText(t reflect.Type, names map[string]string) string {
	about, err := w.source.Type(t)
	if err != nil && w.err == nil {
		w.err = err
	}
	about = afterwards.ReplaceAllString(about, "")
	return sentence(withNames(withoutSubject(reference.ReplaceAllString(ours.ReplaceAllString(about, ""), ""), t.Name()), names))
}

var (
	durations = reflect.TypeFor[time.Duration]()
	times     = reflect.TypeFor[time.Time]()
)

// typeName returns what a value of a type is called.
func typeName(t reflect.Type) string {
	switch t {
	case durations:
		return "duration"
	case times:
		return "time"
	}
	//exhaustive:ignore
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Slice {
			return "list of lists"
		}
		return "list of " + typeName(t.Elem()) + "s"
	case reflect.Map:
		if t.Elem().Kind() == reflect.Interface {
			return "map"
		}
		return "map of " + typeName(t.Elem()) + "s"
	case reflect.Struct:
		return "block"
	case reflect.Interface:
		return "value"
	}
	return "number"
}

// valueText returns a value as a file states it; "": it is not one that a table shows, or it is no value.
func valueText(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch {
	case v.Type() == times:
		return ""
	case v.Type() == durations:
		return durationText(time.Duration(v.Int()))
	case v.Kind() == reflect.String:
		return v.String()
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case v.CanInt(), v.CanUint(), v.CanFloat():
		return fmt.Sprint(v.Interface())
	case v.Kind() == reflect.Map && v.Len() > 0 && v.Type().Key().Kind() == reflect.String:
		var parts []string
		for _, key := range v.MapKeys() {
			parts = append(parts, key.String()+" = "+valueText(v.MapIndex(key)))
		}
		slices.Sort(parts)
		return "{ " + strings.Join(parts, ", ") + " }"
	case v.Kind() == reflect.Slice && v.Len() > 0 && v.Type().Elem().Kind() != reflect.Struct:
		var parts []string
		for i := range v.Len() {
			part := valueText(v.Index(i))
			if v.Index(i).Kind() == reflect.String {
				part = strconv.Quote(part)
			}
			parts = append(parts, part)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return ""
}

// durationText is a duration without parts that are 0.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
