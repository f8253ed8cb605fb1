package persist_test

import (
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/scheduler/persist"
)

// name is a key: a string that knows its order.
type name string

func (n name) Compare(other name) int { return strings.Compare(string(n), string(other)) }

func Example() {
	var nodes persist.Tree[name, string]
	token := persist.NewToken()
	persist.Put(token, &nodes, "n2", "ready")
	persist.Put(token, &nodes, "n1", "ready")
	snapshot := nodes

	token = persist.NewToken() // the snapshot is kept: its pages must not change
	persist.Put(token, &nodes, "n1", "down")
	persist.Delete(token, &nodes, "n2")
	show := func(what string, tree persist.Tree[name, string]) {
		tree.Ascend(nil, func(id name, status string) bool {
			fmt.Println(what, id, status)
			return true
		})
	}
	show("now:", nodes)
	show("before:", snapshot)
	// Output:
	// now: n1 down
	// before: n1 ready
	// before: n2 ready
}
