package stats

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
)

// ticksPerSecond is the unit of the times that Linux shows to programs (USER_HZ), on all architectures that the agent is built for.
const ticksPerSecond = 100

// processor is the time that a processor has spent since the machine's start, in ticks of the kernel.
type processor struct {
	name               string // cpu0
	user, system, idle float64
}

// processors reads what the kernel reports of each processor.
func processors() ([]processor, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil, err
	}
	return readProcessors(text), nil
}

// readProcessors reads /proc/stat. Lines of other kinds are passed over, as is that of all processors together.
func readProcessors(text []byte) []processor {
	var out []processor
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20) // that of interrupts is long
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 8 || len(words[0]) < 4 || !strings.HasPrefix(words[0], "cpu") {
			continue
		}
		var ticks [7]float64 // user, nice, system, idle, iowait, irq, softirq
		for i := range ticks {
			ticks[i], _ = strconv.ParseFloat(words[i+1], 64) // the kernel writes numbers
		}
		out = append(out, processor{
			name: words[0], user: ticks[0] + ticks[1], system: ticks[2] + ticks[5] + ticks[6], idle: ticks[3] + ticks[4],
		})
	}
	return out
}
