package dashboard

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/dashboard/internal/jobs"
	"github.com/wakebell/wakebell/internal/conntest"
)

// pageData has the data of each template.
var pageData = map[string]any{
	"ask": question{}, "audit": auditData{}, "dead": deadData{}, "dead_topics": deadTopics{}, "doctor": doctorData{},
	"failure": failure{}, "gate": gateData{}, "gates": gatesData{}, "gone": goneData{}, "job": jobs.Status{},
	"jobs": []jobs.Status{}, "letter": letterData{}, "nodes": nodesData{}, "overview": overviewData{}, "queue": queueData{},
	"queues": queuesData{}, "schedule": scheduleData{}, "schedules": schedulesData{}, "search": searchData{},
	"timer": timerData{}, "timers": timersData{}, "topic": topicData{}, "topics": topicsData{},
}

// Every template renders data without any field, with every field, with every field but
// one, and with every text that a template compares with. A helper that does not take
// the type of a field fails only where the field is shown.
func TestTemplatesRenderEveryState(t *testing.T) {
	t.Parallel()
	d, err := New(conntest.WithoutRedis(t, connection.Config{}), Operators{Timers: &wakebell.Client{}}, Config{})
	require.NoError(t, err)
	require.ElementsMatch(t, slices.Collect(maps.Keys(d.templates)), slices.Collect(maps.Keys(pageData)), "each template has its data")
	for name, zero := range pageData {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			render := func(state string, data any) {
				for _, full := range []bool{false, true} {
					var f frame
					if full {
						fill(reflect.ValueOf(&f).Elem(), 0, "x")
					}
					f.Page = data
					require.NoError(t, d.templates[name].ExecuteTemplate(io.Discard, "layout", f), state)
				}
			}
			render("empty", zero)
			for _, text := range append(compared(t), "x") {
				render("texts "+text, filled(zero, text))
			}
			root := reflect.New(reflect.TypeOf(zero)).Elem()
			fill(root, 0, "x")
			without(root, name, func(path string) { render("without "+path, root.Interface()) })
		})
	}
}

var comparison = regexp.MustCompile(`\beq [^"}]*"([^"]*)"`)

// compared returns the texts that templates compare values with.
func compared(t *testing.T) (texts []string) {
	t.Helper()
	files, err := templateFiles.ReadDir("templates")
	require.NoError(t, err)
	for _, file := range files {
		source, err := templateFiles.ReadFile("templates/" + file.Name())
		require.NoError(t, err)
		for _, found := range comparison.FindAllStringSubmatch(string(source), -1) {
			texts = append(texts, found[1])
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

func filled(zero any, text string) any {
	v := reflect.New(reflect.TypeOf(zero)).Elem()
	fill(v, 0, text)
	return v.Interface()
}

// maxFill bounds the nesting of types that contain themselves.
const maxFill = 8

// fill sets a value and all that it contains; texts are text.
func fill(v reflect.Value, depth int, text string) {
	if !v.CanSet() || depth > maxFill {
		return
	}
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Now().Add(-time.Hour)))
		return
	case time.Duration:
		v.SetInt(int64(90 * time.Second))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(2)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(2)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(2.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1, text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), depth+1, text)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1, text)
		fill(value, depth+1, text)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1, text)
		}
	case reflect.Interface:
		if v.Type() == reflect.TypeFor[error]() {
			v.Set(reflect.ValueOf(errors.New(text)))
		}
	default: // functions and channels are not shown
	}
}

// without calls visit with each part of a value set to its zero value in turn.
func without(v reflect.Value, path string, visit func(path string)) {
	if !v.CanSet() || v.IsZero() {
		return
	}
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	v.SetZero()
	visit(path)
	v.Set(old)
	switch v.Kind() {
	case reflect.Struct:
		if _, instant := v.Interface().(time.Time); instant {
			return
		}
		for i := range v.NumField() {
			without(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	case reflect.Slice:
		without(v.Index(0), fmt.Sprint(path, "[0]"), visit)
	case reflect.Pointer:
		without(v.Elem(), path, visit)
	default:
	}
}
