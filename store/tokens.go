package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/daybook-run/daybook"
)

const selectSecret = `SELECT secret FROM daybook_ledger`

const setSecret = `UPDATE daybook_ledger SET secret = $1 WHERE secret = ''`

// Secret returns the random secret of the ledger, which tokens of attempts are made with. The first caller's fresh one is
// kept for good.
func (s *Store) Secret(ctx context.Context, fresh func() string) (string, error) {
	var secret string
	scan := func(rows *sql.Rows) error { return rows.Scan(&secret) }
	if err := s.read(ctx, "read the secret of the ledger", selectSecret, scan); err != nil || secret != "" {
		return secret, err
	}
	err := s.write(ctx, "make the secret of the ledger", func(ctx context.Context, t *tx) error {
		if _, err := t.exec(ctx, setSecret, fresh()); err != nil {
			return err
		}
		return t.query(ctx, selectSecret, scan)
	})
	return secret, err
}

const lockLedger = `SELECT id FROM daybook_ledger /*wait*/`

const insertToken = `INSERT INTO daybook_tokens (number, name, role, hash, made_us, made_by)
SELECT COALESCE(max(number), 0) + 1, $1, $2, $3, $4, $5 FROM daybook_tokens RETURNING number`

// AddToken records a token by its fingerprint, with the act, and returns it with its number.
func (s *Store) AddToken(ctx context.Context, tok daybook.Token, hash string, act daybook.Activity) (daybook.Token, error) {
	err := s.provedWrite(ctx, "add a token", exists(selectTokens+"WHERE hash = $1", hash), func(ctx context.Context, t *tx) error {
		if err := t.query(ctx, lockLedger, func(*sql.Rows) error { return nil }); err != nil { // one at a time: numbers have no gaps
			return err
		}
		if err := t.query(ctx, insertToken, func(rows *sql.Rows) error { return rows.Scan(&tok.Number) },
			clean(tok.Name, daybook.MaxActorBytes), string(tok.Role), hash, us(tok.MadeAt), clean(tok.MadeBy, daybook.MaxActorBytes)); err != nil {
			return err
		}
		made := act
		made.Note = tok.ID() + ": " + made.Note
		return t.insertActivity(ctx, &made)
	})
	return tok, err
}

const selectTokens = `SELECT number, name, role, made_us, made_by, revoked_us, revoked_by FROM daybook_tokens `

func scanToken(rows *sql.Rows) (daybook.Token, error) {
	var tok daybook.Token
	var made, revoked int64
	err := rows.Scan(&tok.Number, &tok.Name, &tok.Role, &made, &tok.MadeBy, &revoked, &tok.RevokedBy)
	tok.MadeAt, tok.RevokedAt = at(made), at(revoked)
	return tok, err
}

// Tokens lists every token there ever was, in order of their numbers.
func (s *Store) Tokens(ctx context.Context) ([]daybook.Token, error) {
	var list []daybook.Token
	err := s.read(ctx, "read tokens", selectTokens+"ORDER BY number", func(rows *sql.Rows) error {
		tok, err := scanToken(rows)
		list = append(list, tok)
		return err
	})
	return list, err
}

// TokenByHash returns the token with a fingerprint, revoked ones included. Errors have CodeNotFound.
func (s *Store) TokenByHash(ctx context.Context, hash string) (daybook.Token, error) {
	var found daybook.Token
	err := s.read(ctx, "look a token up", selectTokens+"WHERE hash = $1", func(rows *sql.Rows) (err error) {
		found, err = scanToken(rows)
		return err
	}, hash)
	if err == nil && found.Number == 0 {
		return found, daybook.NotFound("there is no such token")
	}
	return found, err
}

const revokeToken = `UPDATE daybook_tokens SET revoked_us = $2, revoked_by = $3 WHERE number = $1 AND revoked_us = 0`

// RevokeToken ends the rights of a token. False: there is none of this number that has any.
func (s *Store) RevokeToken(ctx context.Context, number int64, act daybook.Activity) (changed bool, err error) {
	err = s.provedWrite(ctx, "revoke a token", s.acted(&act), func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, revokeToken, number, us(act.At), clean(act.Actor, daybook.MaxActorBytes))
		if changed = n > 0; err != nil || !changed {
			return err
		}
		return t.insertActivity(ctx, &act)
	})
	return changed, err
}

const insertCall = `INSERT INTO daybook_calls (caller, key, fingerprint, until_us, at_us) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (caller, key) DO NOTHING`

const selectCall = `SELECT fingerprint, status, until_us, header, body FROM daybook_calls WHERE caller = $1 AND key = $2 /*wait*/`

const selectBegunCall = `SELECT key FROM daybook_calls WHERE caller = $1 AND key = $2 AND fingerprint = $3 AND status = 0 AND until_us = $4 AND at_us = $5`

const takeCall = `UPDATE daybook_calls SET fingerprint = $3, status = 0, until_us = $4, at_us = $5, header = '', body = '' WHERE caller = $1 AND key = $2`

const forgetCalls = `DELETE FROM daybook_calls WHERE at_us < $1`

// BeginCall notes that a call is under way until an instant, and forgets those from before another. False: the key was used
// already, and the call as it stands is returned. One that was under way for too long is taken over when it is the same.
func (s *Store) BeginCall(ctx context.Context, c daybook.Call, until, forget, now time.Time) (begun bool, was daybook.Call, err error) {
	mine := exists(selectBegunCall, c.Caller, c.Key, c.Fingerprint, us(until), us(now))
	err = s.provedWrite(ctx, "begin a call", mine, func(ctx context.Context, t *tx) error {
		begun, was = false, c
		if _, err := t.exec(ctx, forgetCalls, us(forget)); err != nil {
			return err
		}
		n, err := t.exec(ctx, insertCall, c.Caller, c.Key, c.Fingerprint, us(until), us(now))
		if begun = n > 0; err != nil || begun {
			return err
		}
		var busyUntil int64
		if err := t.query(ctx, selectCall, func(rows *sql.Rows) error {
			return rows.Scan(&was.Fingerprint, &was.Status, &busyUntil, &was.Header, &was.Body)
		}, c.Caller, c.Key); err != nil {
			return err
		}
		if begun = was.Status == 0 && was.Fingerprint == c.Fingerprint && at(busyUntil).Before(now); !begun {
			return nil
		}
		_, err = t.exec(ctx, takeCall, c.Caller, c.Key, c.Fingerprint, us(until), us(now))
		return err
	})
	return begun, was, err
}

const endCall = `UPDATE daybook_calls SET status = $3, header = $4, body = $5 WHERE caller = $1 AND key = $2 AND status = 0`

const dropCall = `DELETE FROM daybook_calls WHERE caller = $1 AND key = $2 AND status = 0`

// EndCall keeps the answer of a call, or, without a status, forgets that it was made: it may be made again.
func (s *Store) EndCall(ctx context.Context, c daybook.Call) error {
	return s.write(ctx, "end a call", func(ctx context.Context, t *tx) error {
		if c.Status == 0 {
			_, err := t.exec(ctx, dropCall, c.Caller, c.Key)
			return err
		}
		_, err := t.exec(ctx, endCall, c.Caller, c.Key, int64(c.Status), c.Header, c.Body)
		return err
	})
}
