package daybook

import (
	"strings"
	"testing"
)

func TestAttemptTokensNameOneClaim(t *testing.T) {
	for _, id := range []AttemptID{
		{"renew:2026-10-26", 1, "0198c0de-0000-7000-8000-000000000001"},
		{"renew:2026-10-26/sub_42", 1 << 40, ""},
		{Key("a:" + strings.Repeat("x", MaxKeyBytes-2)), 7, strings.Repeat("c", 36)},
	} {
		token := id.Token("secret")
		if got, ok := ParseAttemptToken("secret", token); !ok || got != id {
			t.Errorf("%+v came back as %+v, %v", id, got, ok)
		}
		if strings.ContainsAny(token, " \t\r\n\",;=") || len(token) > 500 {
			t.Errorf("%q does not stand in a header", token)
		}
		for _, other := range []string{"", "Secret"} {
			if _, ok := ParseAttemptToken(other, token); ok {
				t.Errorf("the token of another ledger is believed: %q", other)
			}
		}
		for i := range token { // whatever is changed: it is not ours any more
			b := []byte(token)
			b[i]++
			if got, ok := ParseAttemptToken("secret", string(b)); ok {
				t.Fatalf("changed at %d it is believed: %+v", i, got)
			}
		}
	}
	for _, token := range []string{"", "dba_", "dba_AAAA", "dbt_x", strings.Repeat("dba_A", 1000)} {
		if _, ok := ParseAttemptToken("secret", token); ok {
			t.Errorf("%.20q is believed", token)
		}
	}
}

func FuzzParseAttemptToken(f *testing.F) {
	f.Add(AttemptID{"renew:2026-10-26", 1, "c"}.Token("secret"))
	f.Add("dba_")
	f.Fuzz(func(t *testing.T, token string) {
		if id, ok := ParseAttemptToken("secret", token); ok && id.Token("secret") != token {
			t.Errorf("%q is believed as %+v", token, id)
		}
	})
}

func TestRoles(t *testing.T) {
	for _, have := range Roles {
		for _, want := range Roles {
			if may := have.Allows(want); may != (have == want || have == RoleAct && want == RoleView) {
				t.Errorf("%s allows %s: %v", have, want, may)
			}
		}
	}
}
