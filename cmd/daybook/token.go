package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

func newToken(a *app) *cobra.Command {
	return noun("token", textToken, newTokenCreate(a), newTokenList(a), newTokenRevoke(a))
}

// tokenJSON is daybook/token.v1. Only what is made has the token itself.
type tokenJSON struct {
	Schema    string       `json:"schema"`
	ID        string       `json:"id"`
	Name      string       `json:"name"`
	Role      daybook.Role `json:"role"`
	Made      time.Time    `json:"made"`
	MadeBy    string       `json:"made_by"`
	Revoked   time.Time    `json:"revoked,omitzero"`
	RevokedBy string       `json:"revoked_by,omitempty"`
	Token     string       `json:"token,omitempty"`
	DryRun    bool         `json:"dry_run,omitempty"`
}

func newTokenJSON(t daybook.Token) tokenJSON {
	return tokenJSON{Schema: "daybook/token.v1", ID: t.ID(), Name: t.Name, Role: t.Role, Made: t.MadeAt, MadeBy: t.MadeBy, Revoked: t.RevokedAt, RevokedBy: t.RevokedBy}
}

func newTokenCreate(a *app) *cobra.Command {
	var role, name string
	var dry bool
	cmd := &cobra.Command{
		Use: "create --role view|act|ping --name N", Short: textTokenCreate, Long: textTokenCreateLong, Example: textTokenCreateExample, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.tokenCreate(cmd.Context(), role, name, dry) },
	}
	cmd.Flags().StringVar(&role, "role", "", "view, act or ping (required)")
	cmd.Flags().StringVar(&name, "name", "", "whose it is (default: your own name)")
	writing(cmd, &dry)
	return cmd
}

func (a *app) tokenCreate(ctx context.Context, role, name string, dry bool) error {
	if role == "" {
		return daybook.Invalid("token create: --role is missing").WithHint("view looks, act changes, ping sends signs of life")
	}
	if name == "" {
		name = a.person().Name
	}
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		if dry {
			kept, err := control.CheckToken(daybook.Role(role), name)
			if err != nil {
				return err
			}
			return a.tokenDry(daybook.Token{Role: daybook.Role(role), Name: kept, MadeBy: a.person().Name, MadeAt: a.Now()}, daybook.Say("would make a token of role %s for %s", role, kept))
		}
		tok, text, err := c.CreateToken(ctx, a.person(), daybook.Role(role), name)
		if err != nil {
			return err
		}
		if a.flags.json {
			j := newTokenJSON(tok)
			j.Token = text
			return a.printJSON(j)
		}
		if _, err := fmt.Fprintln(a.Stdout, text); err != nil {
			return err
		}
		a.say("%s  role %s, for %s. It is shown this once: keep it in a file that only its owner reads.", tok.ID(), tok.Role, tok.Name)
		return nil
	})
}

// tokenDry tells what would become of a token.
func (a *app) tokenDry(t daybook.Token, what daybook.Text) error {
	if a.flags.json {
		j := newTokenJSON(t)
		if t.Number == 0 {
			j.ID = ""
		}
		j.DryRun = true
		return a.printJSON(j)
	}
	defer a.dryRun()
	return a.line("%s", what)
}

func newTokenList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: textTokenList, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.tokenList(cmd.Context()) },
	}
}

func (a *app) tokenList(ctx context.Context) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		all, err := c.Tokens(ctx)
		if err != nil {
			return err
		}
		g := &grid{head: []string{"TOKEN", "ROLE", "NAME", "MADE", "BY", "REVOKED"}}
		for _, t := range all {
			if a.flags.json {
				if err := a.printJSON(newTokenJSON(t)); err != nil {
					return err
				}
				continue
			}
			g.add(t.ID(), string(t.Role), t.Name, a.moment(t.MadeAt, ""), t.MadeBy, a.moment(t.RevokedAt, ""))
		}
		if err := a.print(g); err != nil {
			return err
		}
		if len(all) == 0 {
			a.say("there is no token: daybook token create --role act --name NAME makes one")
		}
		return nil
	})
}

func newTokenRevoke(a *app) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use: "revoke ID", Short: textTokenRevoke, Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.tokenRevoke(cmd.Context(), args[0], dry) },
	}
	writing(cmd, &dry)
	return cmd
}

func (a *app) tokenRevoke(ctx context.Context, id string, dry bool) error {
	return a.withControl(ctx, func(_ *ledger, c *control.Control) error {
		if dry {
			tok, err := c.Token(ctx, id)
			switch {
			case err != nil:
				return err
			case !tok.RevokedAt.IsZero():
				return a.tokenDry(tok, daybook.Say("%s was revoked before, by %s", tok.ID(), tok.RevokedBy))
			}
			return a.tokenDry(tok, daybook.Say("%s of %s would have no rights any more", tok.ID(), tok.Name))
		}
		tok, err := c.RevokeToken(ctx, a.person(), id)
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.printJSON(newTokenJSON(tok))
		}
		a.say("%s of %s has no rights any more.", tok.ID(), tok.Name)
		return nil
	})
}
