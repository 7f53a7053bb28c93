package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

// tokenMark begins the tokens of programs and people, so that one is known for what it is wherever it turns up.
const tokenMark = "dbt_"

// CreateToken makes a token with the rights of a role, and returns it with its text, which is shown once: the ledger keeps
// its fingerprint only. The name says whose it is, and stands as the actor in every record of what is done with it.
//
// Errors: CodeInvalid, no such role, no name or one that cannot stand in a record.
func (c *Control) CreateToken(ctx context.Context, p Person, role daybook.Role, name string) (daybook.Token, string, error) {
	p, err := p.check()
	if err != nil {
		return daybook.Token{}, "", err
	}
	if name, err = CheckToken(role, name); err != nil {
		return daybook.Token{}, "", err
	}
	now := c.now()
	text := tokenMark + c.o.NewSecret()
	tok, err := c.s.AddToken(ctx, daybook.Token{Name: name, Role: role, MadeAt: now, MadeBy: p.Name}, fingerprint(text),
		daybook.Activity{At: now, Actor: p.Name, Action: "token create", Note: string(role) + " " + name})
	return tok, text, err
}

// CheckToken says what would keep a token from being made, and returns its name as it would be kept.
func CheckToken(role daybook.Role, name string) (string, error) {
	if err := checkRole(role); err != nil {
		return "", err
	}
	name, err := plainText(name, daybook.Say("name of the token"), daybook.MaxActorBytes)
	if err == nil && name == "" {
		err = daybook.Invalid("the token has no name").WithHint("say whose it is: what is done with it is recorded under this name")
	}
	return name, err
}

func checkRole(role daybook.Role) error {
	words := make([]string, len(daybook.Roles))
	for i, r := range daybook.Roles {
		if words[i] = string(r); r == role {
			return nil
		}
	}
	e := daybook.Invalid("role %q is not one of %s", daybook.Clip(string(role), 40), strings.Join(words, ", "))
	if near := daybook.Nearest(string(role), words); near != "" {
		return e.WithHint("did you mean %s?", near)
	}
	return e.WithHint("view looks, act changes, ping sends signs of life")
}

// fingerprint is what is kept of a token. It is made of 256 random bits, which nobody finds by trying.
func fingerprint(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Tokens lists every token there ever was, revoked ones included.
func (c *Control) Tokens(ctx context.Context) ([]daybook.Token, error) { return c.s.Tokens(ctx) }

// Token returns the token that an id names, such as tk_1. Errors: CodeInvalid, that is no name of one; CodeNotFound.
func (c *Control) Token(ctx context.Context, id string) (daybook.Token, error) {
	number, err := tokenNumber(id)
	if err != nil {
		return daybook.Token{}, err
	}
	all, err := c.s.Tokens(ctx)
	if err != nil {
		return daybook.Token{}, err
	}
	for _, tok := range all {
		if tok.Number == number {
			return tok, nil
		}
	}
	return daybook.Token{}, daybook.NotFound("there is no token tk_%d", number).WithHint("daybook token list shows all")
}

func tokenNumber(id string) (int64, error) {
	number, err := strconv.ParseInt(strings.TrimPrefix(id, "tk_"), 10, 64)
	if err != nil || number < 1 {
		return 0, daybook.Invalid("%q names no token", daybook.Clip(id, 40)).WithHint("such as tk_1: daybook token list shows all")
	}
	return number, nil
}

// RevokeToken ends the rights of a token, named as tk_1, at once and for good.
//
// Errors: CodeInvalid, that is no name of one; CodeNotFound; CodeConflict, it was revoked before.
func (c *Control) RevokeToken(ctx context.Context, p Person, id string) (daybook.Token, error) {
	p, err := p.check()
	if err != nil {
		return daybook.Token{}, err
	}
	number, err := tokenNumber(id)
	if err != nil {
		return daybook.Token{}, err
	}
	now := c.now()
	act := daybook.Activity{At: now, Actor: p.Name, Action: "token revoke", Note: daybook.Token{Number: number}.ID()}
	changed, err := c.s.RevokeToken(ctx, number, act)
	if err != nil {
		return daybook.Token{}, err
	}
	all, err := c.s.Tokens(ctx)
	if err != nil {
		return daybook.Token{}, err
	}
	for _, tok := range all {
		switch {
		case tok.Number != number:
		case !changed:
			return tok, daybook.Conflict("%s was revoked before, by %s", tok.ID(), whoever(tok.RevokedBy)).WithHint("nothing is left to do")
		default:
			return tok, nil
		}
	}
	return daybook.Token{}, daybook.NotFound("there is no token tk_%d", number).WithHint("daybook token list shows all")
}

// TokenOf returns the token that a text is. Errors have CodeDenied: there is none, or it was revoked.
func (c *Control) TokenOf(ctx context.Context, text string) (daybook.Token, error) {
	if strings.HasPrefix(text, tokenMark) {
		tok, err := c.s.TokenByHash(ctx, fingerprint(text))
		switch {
		case err == nil && tok.RevokedAt.IsZero():
			return tok, nil
		case err == nil:
			return daybook.Token{}, daybook.Denied("the token %s was revoked", tok.ID()).WithHint("daybook token create makes another")
		case daybook.CodeOf(err) != daybook.CodeNotFound:
			return daybook.Token{}, err
		}
	}
	return daybook.Token{}, daybook.Denied("the token is not one of this ledger").WithHint("daybook token create makes one")
}

// HasToken reports whether any token has rights.
func (c *Control) HasToken(ctx context.Context) (bool, error) {
	all, err := c.s.Tokens(ctx)
	for _, tok := range all {
		if tok.RevokedAt.IsZero() {
			return true, err
		}
	}
	return false, err
}

// How long calls with an Idempotency-Key are remembered, and how long one may be under way before it counts as given up.
const (
	CallsKept = 24 * time.Hour
	callBusy  = time.Minute
)

// BeginCall notes that a call with an Idempotency-Key is under way. False: it was made before, and is returned as it
// stands: under way (no status), or answered. Whether it asked for the same, its fingerprint tells.
func (c *Control) BeginCall(ctx context.Context, call daybook.Call) (begun bool, was daybook.Call, err error) {
	now := c.now()
	return c.s.BeginCall(ctx, call, now.Add(callBusy), now.Add(-CallsKept), now)
}

// EndCall keeps the answer of a call; without a status, it may be made again.
func (c *Control) EndCall(ctx context.Context, call daybook.Call) error {
	return c.s.EndCall(ctx, call)
}
