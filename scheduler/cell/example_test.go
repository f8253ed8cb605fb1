package cell_test

import (
	"fmt"

	"github.com/nomadish/nomadish/scheduler/cell"
)

// A node of two sockets, each with two switches of two GPUs.
func Example() {
	gpu := cell.Vertex{Level: "gpu"}
	pcie := cell.Vertex{Level: "pcie", Children: []cell.Vertex{gpu, gpu}}
	socket := cell.Vertex{Level: "socket", Children: []cell.Vertex{pcie, pcie}}
	node := cell.Vertex{Level: "node", Children: []cell.Vertex{socket, socket}}

	layout, err := cell.NewLayout([]string{"gpu", "pcie", "socket", "node"}, node, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	state := cell.NewState(layout)
	choice, _ := state.Find(cell.Request{Count: 2})
	fmt.Println(choice.Devices, choice.Level, "cut from", choice.Cell)
	for _, d := range choice.Devices {
		state.Take(d, cell.Whole)
	}
	fmt.Println(state.CellsByLevel())

	_, found := state.Find(cell.Request{Count: 5, Level: "socket", Required: true})
	fmt.Println(found)
	// Output:
	// [0 1] pcie cut from 8
	// [{gpu 0} {pcie 1} {socket 1} {node 0}]
	// false
}
