package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/examples"
)

// exampleFile is one file of an example.
type exampleFile struct {
	name string // with '/'
	text []byte
	mode fs.FileMode
}

// exampleNames are the examples that init can write.
var exampleNames = []string{"saas"}

// exampleSaas is the six-job file with the shop that its jobs call.
func exampleSaas() (files []exampleFile, err error) {
	files = []exampleFile{{config.DefaultPath, examples.Six, 0o644}, {"daybook.schema.json", examples.Schema, 0o644}}
	err = fs.WalkDir(examples.Saas, "saas", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := examples.Saas.ReadFile(name)
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(string(text), "#!") {
			mode = 0o755
		}
		files = append(files, exampleFile{strings.TrimPrefix(name, "saas/"), text, mode})
		return err
	})
	return files, err
}

// initExample writes an example into a directory. If any of its files is there already, nothing is written.
func (a *app) initExample(dir string, o initOptions) error {
	if !isOneOf(exampleNames, o.example) {
		return daybook.Invalid("--example %s: there is no such example", daybook.Clip(o.example, 40)).WithHint("one of: %s", strings.Join(exampleNames, " "))
	}
	files, err := exampleSaas()
	if err != nil {
		return err
	}
	for _, f := range files {
		at := filepath.Join(dir, filepath.FromSlash(f.name))
		if _, err := os.Lstat(at); err == nil {
			return daybook.Conflict("%s exists and is left as it is", at).WithHint("name another directory: daybook init --example %s DIR", o.example)
		}
		if o.dryRun {
			fmt.Fprintln(a.Stdout, at)
		}
	}
	if o.dryRun {
		a.dryRun()
		return nil
	}
	if err := writeExample(dir, files); err != nil {
		return err
	}
	if a.flags.json {
		names := make([]string, len(files))
		for i, f := range files {
			names[i] = f.name
		}
		return a.printJSON(map[string]any{"schema": "daybook/init.v1", "directory": dir, "files": names, "next": exampleNext(dir)})
	}
	a.say("wrote %d files to %s; README.md there has the commands, the first is:  %s", len(files), dir, exampleNext(dir))
	return nil
}

func exampleNext(dir string) string {
	if dir == "." {
		return "go run server.go"
	}
	return "cd " + shellWord(dir) + " && go run server.go"
}

// writeExample writes all files, or none.
func writeExample(dir string, files []exampleFile) error {
	var written []string
	for _, f := range files {
		at := filepath.Join(dir, filepath.FromSlash(f.name))
		err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(path.Dir(f.name))), 0o755)
		if err != nil {
			err = daybook.New(daybook.CodeInvalid, "make a directory for %s", at).Because(plain(err)).WithHint("name a directory that you may write to")
		} else {
			err = writeNew(at, f.text, f.mode)
		}
		if err != nil {
			for _, name := range written {
				err = errors.Join(err, os.Remove(name))
			}
			return err
		}
		written = append(written, at)
	}
	return nil
}
