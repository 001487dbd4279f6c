package main

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// plotConcurrent are the max_concurrent of the plot of rates.
var plotConcurrent = []int{1, 2, 5, 10, 20, 50, 100, 200, 500}

// draw makes the plots of what was measured, as SVG files in a folder.
func draw(r *results, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := drawRate(r, filepath.Join(folder, "rate.svg")); err != nil {
		return fmt.Errorf("plot rates: %w", err)
	}
	if err := drawLoad(r, filepath.Join(folder, "load.svg")); err != nil {
		return fmt.Errorf("plot loads: %w", err)
	}
	if err := drawLateness(r, filepath.Join(folder, "lateness.svg")); err != nil {
		return fmt.Errorf("plot lateness: %w", err)
	}
	if err := drawGrowth(r, folder); err != nil {
		return fmt.Errorf("plot growth: %w", err)
	}
	return nil
}

// drawRate shows how many timers are handled per second by max_concurrent,
// beside the floor.
func drawRate(r *results, path string) error {
	p := newPlot("timers handled per second", "max_concurrent", "thousands per second")
	var points plotter.XYs
	for _, c := range plotConcurrent {
		if m := r.median("concurrency", concurrencyName(c), rate); m > 0 {
			points = append(points, plotter.XY{X: float64(c), Y: m / 1000})
		}
	}
	if len(points) == 0 {
		return nil
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticksAt(plotConcurrent)
	if err := addLine(p, "wakebell", points, 0); err != nil {
		return err
	}
	if m := r.median("deliver", "floor", rate); m > 0 {
		level := plotter.XYs{{X: points[0].X, Y: m / 1000}, {X: points[len(points)-1].X, Y: m / 1000}}
		if err := addLine(p, "floor", level, 1); err != nil {
			return err
		}
	}
	p.Y.Min = 0
	return p.Save(16*vg.Centimeter, 9*vg.Centimeter, path)
}

// plotRates are the loads of the plot of costs, in timers a second.
var plotRates = []int{50, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000}

// drawLoad shows what a timer costs and how late it is by the load on one topic.
func drawLoad(r *results, path string) error {
	p := newPlot("one topic with timers that come due one after the other", "timers per second", "µs of CPU per timer; 0.01 ms of lateness")
	for i, c := range []struct {
		title, figure string
		factor        float64
	}{
		{"client and Redis, µs per timer", bothUS, 1}, {"late p50, 0.01 ms", lateP50, 100}, {"late p99, 0.01 ms", lateP99, 100},
	} {
		var points plotter.XYs
		for _, rate := range plotRates {
			if m := c.factor * r.median("load", strconv.Itoa(rate), c.figure); m > 0 {
				points = append(points, plotter.XY{X: float64(rate), Y: m})
			}
		}
		if len(points) == 0 {
			return nil
		}
		if err := addLine(p, c.title, points, i); err != nil {
			return err
		}
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticksAt(plotRates)
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top = true
	return p.Save(16*vg.Centimeter, 9*vg.Centimeter, path)
}

// drawLateness shows which share of timers is at most how late.
func drawLateness(r *results, path string) error {
	p := newPlot("lateness of single timers on an idle topic", "ms after the due instant", "share of timers, %")
	drawn := false
	for i, c := range []struct{ name, title string }{{"now", "due at once"}, {"in-20ms", "planned, 20 ms ahead"}} {
		var points plotter.XYs
		for _, q := range latenessQuantiles {
			if m := r.median("lateness", c.name, quantileName(q)); m > 0 {
				points = append(points, plotter.XY{X: m, Y: 100 * q})
			}
		}
		if len(points) == 0 {
			continue
		}
		drawn = true
		if err := addLine(p, c.title, points, i); err != nil {
			return err
		}
	}
	if !drawn {
		return nil
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Min, p.Y.Max = 0, 100
	return p.Save(16*vg.Centimeter, 9*vg.Centimeter, path)
}

func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Legend.Top, p.Legend.Left = false, false
	p.Add(plotter.NewGrid())
	return p
}

var colours = []color.Color{color.RGBA{R: 0x1f, G: 0x77, B: 0xb4, A: 0xff}, color.RGBA{R: 0xd6, G: 0x60, B: 0x1c, A: 0xff}, color.RGBA{R: 0x2c, G: 0xa0, B: 0x2c, A: 0xff}}

func addLine(p *plot.Plot, title string, points plotter.XYs, colour int) error {
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, marks.Color = colours[colour], colours[colour]
	line.Width = vg.Points(1.5)
	p.Add(line, marks)
	p.Legend.Add(title, line)
	return nil
}

// ticksAt marks these values.
func ticksAt(values []int) plot.ConstantTicks {
	ticks := make(plot.ConstantTicks, len(values))
	for i, v := range values {
		ticks[i] = plot.Tick{Value: float64(v), Label: shortCount(v)}
	}
	return ticks
}

// shortCount writes thousands and millions short, so that labels do not touch.
func shortCount(v int) string {
	switch {
	case v >= 1_000_000 && v%1_000_000 == 0:
		return fmt.Sprint(v/1_000_000, "M")
	case v >= 1000 && v%1000 == 0:
		return fmt.Sprint(v/1000, "k")
	default:
		return strconv.Itoa(v)
	}
}

func concurrencyName(c int) string { return strconv.Itoa(c) }
