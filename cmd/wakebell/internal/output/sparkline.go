package output

import "strings"

// sparks are the bars of a sparkline, from the lowest.
var sparks = []rune("▁▂▃▄▅▆▇█")

// Sparkline draws values as bars, of which each stands for the sum of as many values as
// are needed for at most width bars. The lowest bar is 0, or less than an eighth of the
// highest sum.
func Sparkline(values []int64, width int) string {
	if len(values) == 0 || width < 1 {
		return ""
	}
	each := (len(values) + width - 1) / width
	var sums []int64
	highest := int64(0)
	for end := len(values); end > 0; end -= each { // the last bar is whole
		sum := int64(0)
		for _, v := range values[max(0, end-each):end] {
			sum += v
		}
		sums, highest = append(sums, sum), max(highest, sum)
	}
	var line strings.Builder
	for i := len(sums) - 1; i >= 0; i-- {
		bar := 0
		if highest > 0 {
			bar = int(float64(sums[i]) / float64(highest) * float64(len(sparks)-1))
		}
		line.WriteRune(sparks[bar])
	}
	return line.String()
}
