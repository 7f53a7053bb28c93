package main

import (
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/internal/userdb"
)

// openUserDB opens a database of the user, to be read only. It connects when it is used.
func openUserDB(dsn string) (*sql.DB, error) {
	kind, err := userdb.KindOf(dsn)
	if err != nil {
		return nil, err
	}
	switch kind {
	case userdb.SQLite:
		path := strings.TrimPrefix(dsn, "sqlite:")
		return sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: "mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(1)"}).String())
	case userdb.Postgres:
		return openPostgres(dsn, "default_transaction_read_only", "on")
	}
	return openMySQL(dsn)
}

// openMySQL opens a MySQL or MariaDB of a URL. Its instants are UTC.
func openMySQL(dsn string) (*sql.DB, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Host == "" && u.Query().Get("socket") == "" {
		return nil, daybook.Invalid("the database URL").Because(errors.New("write mysql://user@host:3306/name"))
	}
	c := mysql.NewConfig()
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.Net, c.Addr, c.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	if u.Port() == "" {
		c.Addr += ":3306"
	}
	if socket := u.Query().Get("socket"); socket != "" {
		c.Net, c.Addr = "unix", socket
	}
	c.TLSConfig = u.Query().Get("tls")
	c.ParseTime, c.Loc, c.Timeout = true, time.UTC, dialTimeout
	c.Params = map[string]string{"time_zone": "'+00:00'"}
	c.Logger = &mysql.NopLogger{} // what goes wrong is an error
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, daybook.Invalid("the database URL").Because(errors.New(config.Mask(err.Error())))
	}
	return sql.OpenDB(connector), nil
}
