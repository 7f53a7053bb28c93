package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	const pass = `{"Action":"output","Package":"a","Test":"TestX","Output":"    quiet\n"}
{"Action":"pass","Package":"a","Test":"TestX","Elapsed":0.1}
{"Action":"pass","Package":"a","Elapsed":0.2}
{"Action":"skip","Package":"without tests","Elapsed":0}
`
	for _, c := range []struct{ name, in, out, err string }{
		{"all pass", pass, "1 tests passed, 0 failed, 0 skipped", ""},
		{"one fails", pass + `{"Action":"output","Package":"b","Test":"TestY","Output":"    why\n"}
{"Action":"fail","Package":"b","Test":"TestY"}`, "    why\n", "1 failed"},
		{"one is skipped", pass + `{"Action":"output","Package":"b","Test":"TestY/postgres","Output":"    no server\n"}
{"Action":"skip","Package":"b","Test":"TestY/postgres"}`, "    no server\n", "skipped, so nothing is known: b TestY/postgres"},
		{"one prints such a line", `{"Action":"output","Package":"a","Test":"TestX","Output":"{\"Action\":\"skip\",\"Test\":\"T\"}\n"}` + "\n" + pass, "0 skipped", ""},
		{"a package does not build", pass + `{"ImportPath":"b","Action":"build-output","Output":"b.go:1: nonsense\n"}
{"ImportPath":"b","Action":"build-fail"}`, "b.go:1: nonsense\n", "1 failed"},
		{"one comes to no end", pass + `{"Action":"output","Package":"b","Test":"TestY","Output":"panic: test timed out\n"}
{"Action":"output","Package":"b","Output":"FAIL\tb\n"}
{"Action":"fail","Package":"b"}`, "panic: test timed out\nFAIL\tb\n", "1 failed"},
		{"the go command complains", "pattern ./...: no Go files\n", "no Go files", "no test ran"},
	} {
		var out strings.Builder
		err := run(strings.NewReader(c.in), &out)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if said != c.err || !strings.Contains(out.String(), c.out) || strings.Contains(out.String(), "quiet") {
			t.Errorf("%s: %q, printed:\n%s", c.name, said, out.String())
		}
	}
}
