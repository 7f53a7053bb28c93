package httpapi_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver is yours to choose

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/httpapi"
	"github.com/daybook-run/daybook/store/storetest"
)

// A program has the HTTP door in a server of its own, below a prefix. Whoever changes something shows a token.
func ExampleHandler() {
	dir, err := os.MkdirTemp("", "daybook-example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	source := "file:" + filepath.Join(dir, "daybook.db") + storetest.SQLitePragmas
	write, err := sql.Open("sqlite", source)
	if err != nil {
		panic(err)
	}
	defer write.Close()
	write.SetMaxOpenConns(1)
	read, err := sql.Open("sqlite", source)
	if err != nil {
		panic(err)
	}
	defer read.Close()

	e, err := engine.Open(ctx, engine.DB{Write: write, Read: read}, engine.Options{App: "shop", URL: "http://127.0.0.1:3000/daybook"})
	if err != nil {
		panic(err)
	}
	defer e.Close()
	e.Handle(daybook.Job{Name: "renew", Owner: "ops", Timezone: "UTC", Window: daybook.Day},
		func(context.Context, *daybook.Run) error { return nil })
	if err := e.RunDue(ctx); err != nil { // a program that stays calls e.Start
		panic(err)
	}
	_, token, err := e.Control().CreateToken(ctx, control.Person{Name: "ops"}, daybook.RoleAct, "deploy")
	if err != nil {
		panic(err)
	}

	mux := http.NewServeMux()
	mux.Handle("/daybook/", http.StripPrefix("/daybook", httpapi.Handler(e.Control())))
	server := httptest.NewServer(mux)
	defer server.Close()

	for range 2 {
		req, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/daybook/api/v1/jobs/renew/trigger", strings.NewReader(`{"window":"2026-03-02"}`))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		answer, err := server.Client().Do(req)
		if err != nil {
			panic(err)
		}
		_ = answer.Body.Close()
		fmt.Println(answer.StatusCode)
		if err := e.RunDue(ctx); err != nil {
			panic(err)
		}
	}
	// Output:
	// 201
	// 200
}
