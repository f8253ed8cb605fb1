package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
)

// listFlags are those of a command that lists a page of something.
type listFlags struct {
	filter, token string
	perPage       int
}

func (l *listFlags) flags(fs *flag.FlagSet) {
	l.flagsOf(fs, "list only those that match an `expression`", "list at most `N`")
}

// flagsOf is flags with other texts for -filter and -per-page.
func (l *listFlags) flagsOf(fs *flag.FlagSet, filter, perPage string) {
	fs.StringVar(&l.filter, "filter", "", filter)
	fs.IntVar(&l.perPage, "per-page", 0, perPage)
	fs.StringVar(&l.token, "page-token", "", "go on where the page before ended, by its `token`")
}

// listOf reads a page of things of one kind.
type listOf[T any] func(context.Context, *api.Query) ([]T, api.Meta, error)

// query is the read options of the page.
func (l *listFlags) query(e *env) *api.Query {
	q := e.query()
	q.Filter, q.PerPage, q.NextToken = l.filter, l.perPage, l.token
	return q
}

// pageError returns what is wrong with the flags for a page, before the request.
func pageError(perPage int) error {
	if perPage < 0 {
		return fmt.Errorf("-per-page %d: allowed are 0 and more", perPage)
	}
	return nil
}

// errNothingFollows is of a page that is empty although a token stated where it begins.
func errNothingFollows(token string) error {
	return fmt.Errorf("nothing follows -page-token %q: the token is not from this list, or everything after it was removed", token)
}

// more prints where the next page begins, if there is one.
func (e *env) more(meta api.Meta) {
	if meta.NextToken != "" {
		e.printf("\nThere are more; go on with -page-token %s\n", meta.NextToken)
	}
}

// showPage prints a page of a list that begins at token: as -json or -t requests, else the table of rows, or none if there is
// nothing at all.
func showPage[T any](e *env, items []T, meta api.Meta, token, none string, rows func(*env, []T) [][]string) int {
	if done, code := e.formatted(items); done {
		return code
	}
	if len(items) == 0 && token != "" {
		return e.fail(errNothingFollows(token))
	}
	if len(items) == 0 {
		e.printf("%s\n", none)
		return exitDone
	}
	ui.Table(e.out, rows(e, items))
	e.more(meta)
	return exitDone
}

// pageOfAll is a command without arguments that lists a page: list returns what reads it, none states that there is nothing, and rows are
// the table.
func pageOfAll[T any](
	fs *flag.FlagSet, none string, list func(*env) listOf[T], rows func([]T) [][]string,
) func(context.Context, *env, []string) int {
	var l listFlags
	l.flags(fs)
	stale := staleFlag(fs)
	return func(ctx context.Context, e *env, args []string) int {
		stale(e)
		items, meta, err := list(e)(ctx, l.query(e))
		if err != nil {
			return e.fail(err)
		}
		return showPage(e, items, meta, l.token, none, func(_ *env, items []T) [][]string { return rows(items) })
	}
}

// showOne is a command that shows what its argument names, as -json or -t requests: named reads it, and show prints it for people.
func showOne[T any](
	fs *flag.FlagSet, named func(context.Context, *env, []string) (T, error), show func(*env, T) error,
) func(context.Context, *env, []string) int {
	stale := staleFlag(fs)
	return func(ctx context.Context, e *env, args []string) int {
		stale(e)
		it, err := named(ctx, e, args)
		if err != nil {
			return e.fail(err)
		}
		if done, code := e.formatted(it); done {
			return code
		}
		if err := show(e, it); err != nil {
			return e.fail(err)
		}
		return exitDone
	}
}

// deleteNamed is a command that deletes what its argument names: remove returns what deletes it.
func deleteNamed(what string, remove func(*env) func(context.Context, string) error) func(context.Context, *env, []string) int {
	return func(ctx context.Context, e *env, args []string) int {
		if err := remove(e)(ctx, args[0]); err != nil {
			return e.fail(err)
		}
		e.printf("Successfully deleted %s %q!\n", what, args[0])
		return exitDone
	}
}
