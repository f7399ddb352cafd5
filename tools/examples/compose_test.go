package examples

import (
	"bufio"
	"bytes"
	"os"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/rhysd/actionlint"
)

func newReader(text []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(text)) }

// TestCompose: compose.yaml is valid by the loader of Docker Compose, which also fills in variables. Without
// a password it is an error that names the variable.
func TestCompose(t *testing.T) {
	load := func(env ...string) error {
		options, err := cli.NewProjectOptions([]string{"../../examples/compose/compose.yaml"}, cli.WithEnv(env))
		if err != nil {
			return err
		}
		project, err := options.LoadProject(t.Context())
		if err == nil && len(project.Services) != 5 {
			t.Errorf("%d services, want 5", len(project.Services))
		}
		return err
	}
	if err := load("REDIS_PASSWORD=x"); err != nil {
		t.Error(err)
	}
	if err := load(); err == nil || !bytes.Contains([]byte(err.Error()), []byte("set REDIS_PASSWORD")) {
		t.Errorf("without a password: %v", err)
	}
}

// TestWorkflows: the workflows are valid by the schema of GitHub Actions.
func TestWorkflows(t *testing.T) {
	linter, err := actionlint.NewLinter(os.Stderr, new(actionlint.LinterOptions))
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"../../.github/workflows/ci.yml", "../../.github/workflows/release.yml"}
	findings, err := linter.LintFiles(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Error(f)
	}
}
