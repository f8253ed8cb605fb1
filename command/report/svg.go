package report

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Size of a plot in its own units; the page scales it.
const (
	width, height            = 760, 300
	left, right, top, bottom = 84, 34, 14, 40
)

// line is one series of a plot.
type line struct {
	name   string
	colour int // of the page's colours; -1: a thin grey line that is there to compare with
	x, y   []float64
}

// plot is lines over two axes.
type plot struct {
	title  string // what it shows, for those who cannot see it
	xName  string
	yName  string
	xTick  func(v float64) string
	yTick  func(v float64) string
	xSteps func(most float64) float64 // the distance of ticks; nil: round numbers
	xLeast float64                    // where the axis begins
	yMost  float64                    // 0: as the lines have it
	lines  []line
}

// svg draws the plot.
func (p *plot) svg() string {
	xMost, yMost := 0.0, p.yMost
	for _, l := range p.lines {
		for i := range l.x {
			if xMost = max(xMost, l.x[i]); p.yMost == 0 {
				yMost = max(yMost, l.y[i])
			}
		}
	}
	if xMost <= p.xLeast {
		xMost = p.xLeast + 1
	}
	if yMost <= 0 {
		yMost = 1
	}
	xStep, yStep := roundStep((xMost-p.xLeast)/7), roundStep(yMost/5)
	if p.xSteps != nil {
		xStep = p.xSteps(xMost - p.xLeast)
	}
	if p.yMost == 0 {
		yMost = math.Ceil(yMost/yStep-1e-9) * yStep
	}
	atX := func(v float64) float64 { return left + (v-p.xLeast)/(xMost-p.xLeast)*(width-left-right) }
	atY := func(v float64) float64 { return height - bottom - min(v, yMost)/yMost*(height-top-bottom) }

	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label=%q>`, width, height, html.EscapeString(p.title))
	for i := 0; float64(i)*yStep <= yMost*1.0001; i++ {
		v := float64(i) * yStep
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%s" y2="%s"/>`, left, width-right, px(atY(v)), px(atY(v)))
		fmt.Fprintf(&b, `<text class="tick" text-anchor="end" x="%d" y="%s">%s</text>`, left-6, px(atY(v)+4), html.EscapeString(p.yTick(v)))
	}
	for i := int(math.Ceil(p.xLeast / xStep)); float64(i)*xStep <= xMost*1.0001; i++ {
		v := float64(i) * xStep
		fmt.Fprintf(&b, `<line class="mark" x1="%s" x2="%s" y1="%d" y2="%d"/>`, px(atX(v)), px(atX(v)), height-bottom, height-bottom+4)
		fmt.Fprintf(&b, `<text class="tick" text-anchor="middle" x="%s" y="%d">%s</text>`, px(atX(v)), height-bottom+17, html.EscapeString(p.xTick(v)))
	}
	fmt.Fprintf(&b, `<line class="axis" x1="%d" x2="%d" y1="%d" y2="%d"/>`, left, width-right, height-bottom, height-bottom)
	fmt.Fprintf(&b, `<text class="name" text-anchor="end" x="%d" y="%d">%s</text>`, width-right, height-5, html.EscapeString(p.xName))
	fmt.Fprintf(&b, `<text class="name" transform="rotate(-90 12 %d)" text-anchor="middle" x="12" y="%d">%s</text>`,
		(top+height-bottom)/2, (top+height-bottom)/2, html.EscapeString(p.yName))
	for i, l := range p.lines {
		if len(l.x) == 0 {
			continue
		}
		wide := "1"
		if l.colour >= 0 { // lines that lie on each other all show
			wide = number(2 + 1.5*float64(min(4, len(p.lines)-1-i)))
		}
		fmt.Fprintf(&b, `<polyline class="line %s" stroke-width="%s" points="`, class(l.colour), wide)
		for i := range l.x {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(px(atX(l.x[i])) + "," + px(atY(l.y[i])))
		}
		fmt.Fprintf(&b, `"><title>%s</title></polyline>`, html.EscapeString(l.name))
	}
	b.WriteString("</svg>")
	return b.String()
}

// class is the CSS class of a colour.
func class(colour int) string {
	if colour < 0 {
		return "ref"
	}
	return "c" + strconv.Itoa(colour%colours)
}

// colours is how many the page has.
const colours = 8

// px prints a place with one digit behind the point.
func px(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// roundStep returns the next of 1, 2, 5 times a power of ten.
func roundStep(v float64) float64 {
	if v <= 0 {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, k := range []float64{1, 2, 5} {
		if v <= k*p*1.0001 {
			return k * p
		}
	}
	return 10 * p
}

// bar is one row of a chart of stacked bars: parts that add up to 1 or less.
type bar struct {
	name  string
	parts []float64
	note  string // behind the bar
	gap   bool   // a new group begins
}

const (
	barHeight, barGap, barLeft, barRight = 17, 5, 214, 164
)

// bars draws stacked bars; of names the parts.
func bars(title string, of []string, list []bar) string {
	h := 4
	for _, x := range list {
		h += barHeight + barGap
		if x.gap {
			h += 2 * barGap
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label=%q>`, width, h, html.EscapeString(title))
	y := 2
	for _, x := range list {
		if x.gap {
			y += 2 * barGap
		}
		fmt.Fprintf(&b, `<text class="tick" text-anchor="end" x="%d" y="%d">%s</text>`, barLeft-8, y+barHeight-5, html.EscapeString(x.name))
		at := float64(barLeft)
		for i, v := range x.parts {
			if v <= 0 {
				continue
			}
			wide := v * float64(width-barLeft-barRight)
			fmt.Fprintf(&b, `<rect class="h%d" x="%s" y="%d" width="%s" height="%d"><title>%s: %s</title></rect>`,
				i, px(at), y, px(wide), barHeight, html.EscapeString(x.name+", "+of[i]), percent(v))
			at += wide
		}
		fmt.Fprintf(&b, `<text class="tick" x="%d" y="%d">%s</text>`, width-barRight+8, y+barHeight-5, html.EscapeString(x.note))
		y += barHeight + barGap
	}
	b.WriteString("</svg>")
	return b.String()
}

// percent prints a part.
func percent(v float64) string { return strconv.FormatFloat(math.Round(v*1000)/10, 'f', -1, 64) + " %" }
