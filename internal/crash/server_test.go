package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// overServer is put before a script: its steps are marked over the server, by way of a road on which calls can be stopped.
const overServer = `unset DAYBOOK_DB
export DAYBOOK_SERVER="$ROAD/$DAYBOOK_KEY/$$"
`

// wirePoints are where a call about a step can be: before the server has it, and after, with its answer on the way back.
var wirePoints = []string{"charge-begin-before", "charge-begin-after", "charge-end-before", "charge-end-after",
	"mail-begin-before", "mail-begin-after", "mail-end-before", "mail-end-after"}

// road carries calls about steps to the server at an address. Where a call is stopped on its way back, its answer is lost.
func (b *boundaries) road(to string) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var key string
		var pid int
		place, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/api/")
		if n, _ := fmt.Sscan(strings.ReplaceAll(place, "/", " "), &key, &pid); n != 2 {
			b.t.Errorf("a call goes astray: %s", r.URL.Path)
			return
		}
		body, err := io.ReadAll(r.Body)
		var about struct{ Step string }
		if err != nil || json.Unmarshal(body, &about) != nil {
			panic(http.ErrAbortHandler)
		}
		point := about.Step + "-" + path[strings.LastIndexByte(path, '/')+1:]
		if !b.at(r.Context(), key, point+"-before", pid) {
			panic(http.ErrAbortHandler)
		}
		out, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, to+"/api/"+path, strings.NewReader(string(body)))
		if err != nil {
			panic(err)
		}
		out.Header = r.Header.Clone()
		answer, err := client.Do(out)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		stops := b.stopsAt(key, point+"-after")
		if err != nil || !b.at(r.Context(), key, point+"-after", pid) || stops {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		w.WriteHeader(answer.StatusCode)
		_, _ = w.Write(text)
	}))
	b.t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	return srv.URL
}

// stopsAt reports whether whoever comes by a point now would be stopped there.
func (g *gate) stopsAt(key, point string) bool {
	v := g.visit(key)
	if v == nil || v.point != point {
		return false
	}
	select {
	case <-v.here:
		return false
	default:
		return true
	}
}

// The same script marks its steps over a server. It is killed at every line, and while a call about a step is on its way there
// or back, and with it, or instead, the server: each effect happens once, and a call whose answer was lost goes on.
func TestKilledAtEveryBoundaryOverAServer(t *testing.T) {
	onBoth(t, boundaryJobs, func(w *world) {
		b := newBoundaries(w)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := ln.Addr().String()
		_ = ln.Close()
		w.extra = append(w.extra, "ROAD="+b.road("http://"+address))
		if err := os.WriteFile(filepath.Join(w.dir, "renew.sh"), []byte(overServer+renewScript), 0o600); err != nil {
			t.Fatal(err)
		}
		open := func(point string) bool { // when everybody is killed
			return slices.Contains([]string{"mail-begun", "mail-sent", "mail-answered", "mail-begin-after", "mail-end-before"}, point)
		}
		b.killed([]victim{
			{"script", slices.Concat(scriptPoints, effectPoints, wirePoints), barePoints, never, func(v *visit) { slay(v.script) }, false, nil},
			{"effect", effectPoints, barePoints, mail, func(v *visit) { slay(v.effect) }, false, nil},
			{"nobody", wirePoints, nil, never, nil, false, nil},
			{"serve", slices.Concat(scriptPoints, effectPoints, wirePoints, undoPoints), barePoints, never, nil, true, nil},
			{"all", slices.Concat(scriptPoints, effectPoints, wirePoints, undoPoints), barePoints, open, nil, true, nil},
		}, func(cmd *exec.Cmd) { cmd.Args = append(cmd.Args, "--listen", address) })
		b.noDirectories()
	})
}
