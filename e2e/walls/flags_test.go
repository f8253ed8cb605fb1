package walls

import "flag"

// The flags of the other folders, which have no effect here: `go test ./e2e/... -bin=PATH` runs these tests too.
var (
	_ = flag.String("bin", "", "no effect: these tests read the source")
	_ = flag.String("logs", "", "no effect")
	_ = flag.Float64("slow", 4, "no effect")
	_ = flag.Bool("faults", false, "no effect")
)
