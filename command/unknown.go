package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// unknown returns the error that no command follows the group ("": the program's own name) as args
// have it, and which may have been meant.
func unknown(group string, args []string, all commands) string {
	if at := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }); at >= 0 {
		args = args[:at]
	}
	if len(args) == 0 || args[0] == "" {
		return "a command is needed"
	}
	name := beneath(group, args[0])
	text := fmt.Sprintf("there is no command %q", name)
	if near := meant(group, args, all); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return text
}

func beneath(group, word string) string { return strings.TrimPrefix(group+" "+word, " ") }

// meant is the command or group that words which follow a group most likely name, or "".
// Each word is mended by itself, so that arguments behind the command do not matter; a
// verb that another noun has ("job logs", "drain") stands for that.
func meant(group string, words []string, all commands) string {
	at, mended := group, false
	for _, word := range words {
		next := wordsAfter(at, all)
		if !slices.Contains(next, word) {
			near := structs.Nearest(word, next)
			if near == "" {
				break
			}
			word, mended = near, true
		}
		at = beneath(at, word)
	}
	if mended {
		return at
	}
	for _, nouns := range []int{1, 2, 3} { // "alloc logs" before "operator raft logs"
		var same []string
		for name := range all { // only one counts: the order does not matter
			if _, alias := aliases[name]; !alias && strings.HasSuffix(name, " "+words[0]) && strings.Count(name, " ") == nouns {
				same = append(same, name)
			}
		}
		if of := "alloc " + words[0]; slices.Contains(same, of) {
			return of // of several nouns, "workflow logs" among them, it is the one that is meant mostly
		}
		if len(same) > 0 {
			return only(same)
		}
	}
	return ""
}

// only is the one element of a list, or "".
func only(all []string) string {
	if len(all) != 1 {
		return ""
	}
	return all[0]
}

// wordsAfter are those that may follow a group or, where it is empty, the program's name.
func wordsAfter(group string, all commands) []string {
	words, before := map[string]bool{}, beneath(group, "")
	for name := range all { // sorted below
		if rest, ok := strings.CutPrefix(name, before); ok && name != "executor" { // which is the agent's own
			first, _, _ := strings.Cut(rest, " ")
			words[first] = true
		}
	}
	return slices.Sorted(maps.Keys(words))
}
