package storetest

import (
	"fmt"
	"time"

	"github.com/daybook-run/daybook"
)

var tokenCases = []example{
	{"the ledger has one secret, whoever asks first", func(k *kit) {
		made := together(8, func(i int) bool {
			secret, err := k.s.Secret(k.ctx, func() string { return fmt.Sprintf("secret %d", i) })
			return err == nil && secret != ""
		})
		equal(k, "made", made, 8)
		first, err := k.s.Secret(k.ctx, func() string { k.Error("it is made twice"); return "" })
		k.ok(err)
		other := ledgerOn(k, k.db.Name, k.db.Open(k))
		again, err := other.Secret(k.ctx, func() string { return "another" })
		k.ok(err)
		equal(k, "secret of another process", again, first)
	}},
	{"a token is found by its fingerprint, numbered, revoked once", func(k *kit) {
		add := func(hash string) daybook.Token {
			tok, err := k.s.AddToken(k.ctx, daybook.Token{Name: "ci", Role: daybook.RoleAct, MadeAt: k.now, MadeBy: "ops"}, hash,
				daybook.Activity{At: k.now, Actor: "ops", Action: "token create", Note: "act ci"})
			k.ok(err)
			return tok
		}
		made := together(8, func(i int) bool { return add(fmt.Sprintf("h%d", i)).Number > 0 })
		equal(k, "made", made, 8)
		all, err := k.s.Tokens(k.ctx)
		k.ok(err)
		for i, tok := range all {
			equal(k, "number", tok.Number, int64(i+1))
		}
		tok, err := k.s.TokenByHash(k.ctx, "h3")
		k.ok(err)
		equal(k, "token", tok, daybook.Token{Number: tok.Number, Name: "ci", Role: daybook.RoleAct, MadeAt: k.now, MadeBy: "ops"})
		_, err = k.s.TokenByHash(k.ctx, "h9")
		k.code(err, daybook.CodeNotFound)
		act := daybook.Activity{At: k.now.Add(time.Hour), Actor: "ann", Action: "token revoke", Note: tok.ID()}
		for i := range 2 {
			changed, err := k.s.RevokeToken(k.ctx, tok.Number, act)
			k.ok(err)
			equal(k, "revoked", changed, i == 0)
		}
		tok, err = k.s.TokenByHash(k.ctx, "h3")
		k.ok(err)
		equal(k, "revoked at", tok.RevokedAt, act.At)
		equal(k, "revoked by", tok.RevokedBy, "ann")
		acts, err := k.s.Activities(k.ctx, time.Time{}, "", 100)
		k.ok(err)
		equal(k, "acts", len(acts), 9)
	}},
	{"a call is begun once; asked again it is under way, then answered, and forgotten after its time", func(k *kit) {
		c := daybook.Call{Caller: "tk_1", Key: "8e03978e", Fingerprint: "f"}
		begin := func(c daybook.Call) (bool, daybook.Call) {
			begun, was, err := k.s.BeginCall(k.ctx, c, k.now.Add(time.Minute), k.now.Add(-24*time.Hour), k.now)
			k.ok(err)
			return begun, was
		}
		begun := together(8, func(int) bool { begun, _ := begin(c); return begun })
		equal(k, "begun", begun, 1)
		if begun, was := begin(c); begun || was.Status != 0 || was.Fingerprint != "f" {
			k.Errorf("begun %v, %+v", begun, was)
		}
		other := c
		other.Caller = "tk_2"
		if begun, _ := begin(other); !begun {
			k.Error("keys of two callers meet")
		}
		k.ok(k.s.EndCall(k.ctx, other)) // without an answer: it may be made again
		if begun, _ := begin(other); !begun {
			k.Error("what was given up cannot be made again")
		}
		k.now = k.now.Add(61 * time.Second) // whoever made it is gone
		different := c
		different.Fingerprint = "g"
		if begun, was := begin(different); begun || was.Fingerprint != "f" {
			k.Errorf("another call took it over: %v, %+v", begun, was)
		}
		if begun, _ := begin(c); !begun {
			k.Error("it is under way for ever")
		}
		c.Status, c.Header, c.Body = 201, `{"a":"b"}`, "{}"
		k.ok(k.s.EndCall(k.ctx, c))
		begun1, was := begin(daybook.Call{Caller: c.Caller, Key: c.Key, Fingerprint: "f"})
		equal(k, "begun again", begun1, false)
		equal(k, "answer", was, c)
		k.now = k.now.Add(24*time.Hour + time.Second)
		if begun, _ := begin(daybook.Call{Caller: c.Caller, Key: c.Key, Fingerprint: "z"}); !begun {
			k.Error("it is never forgotten")
		}
	}},
}
