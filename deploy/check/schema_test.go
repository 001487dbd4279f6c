package check

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// The schema that editors use takes the files that we ship, the one of the documentation
// and every form of a field, and refuses what a node refuses and a schema can say.
func TestSchemaOfConfigurationFiles(t *testing.T) {
	t.Parallel()
	schema, err := jsonschema.NewCompiler().Compile("../../docs/public/wakebell.schema.json")
	require.NoError(t, err)
	valid := func(text []byte) error {
		asJSON, err := yaml.YAMLToJSON(text)
		require.NoError(t, err)
		file, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
		require.NoError(t, err)
		return schema.Validate(file)
	}
	for _, name := range []string{"../package/wakebell.yaml", "../compose/wakebell.yaml"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, valid(text), name)
	}
	page, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)
	_, example, found := strings.Cut(string(page), "```yaml\n")
	require.True(t, found)
	example, _, _ = strings.Cut(example, "```")
	for _, text := range []string{
		example, "", "topics: [a, 5]", "topics: {a: null, 'b: c': {}}", "queues: {q: {completed: 5, separator: 0}}",
		"topics: {a: {exec: ./charge.sh, max-attempts: 5, history: all, lease-ttl: 1.5h, retry-max: 0}}",
		"operators: [a, b]", "operators: a,b", "hash-tag: true", "breaker: 0.5",
	} {
		require.NoError(t, valid([]byte(text)), text)
	}
	for _, text := range []string{
		"[a]", "max-concurency: 7", "topics: {a: {max-concurency: 7}}", "topics: {a: 5}", "topics: a",
		"queues: {q: {lease-ttl: 1m}}", "topics: {a: {max-deliveries: 3}}", "log-level: loud",
		"max-concurrent: many", "max-concurrent: [1, 2]", "hash-tag: perhaps", "config: wakebell.yaml",
	} {
		require.Error(t, valid([]byte(text)), text)
	}
}
