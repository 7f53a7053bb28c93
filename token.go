package daybook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// AttemptID names one claim of a run: what a report must match to be taken.
type AttemptID struct {
	Key   Key
	Fence int64
	Claim string // random id of the claim: a fence may come twice after a restore
}

// ID names the current claim of r.
func (r *Run) ID() AttemptID { return AttemptID{Key: r.Key, Fence: r.Fence, Claim: r.Claim} }

// attemptTokenMark begins the tokens of attempts, so that one is known for what it is wherever it turns up.
const attemptTokenMark = "dba_"

// Token is the right to speak for one attempt: it names the claim and proves, with the ledger's secret, that Daybook gave
// it. Nothing is kept for it, so it holds on each node and after a restart. It is used up by the report that ends the
// attempt, since every report is compared with state, fence and claim.
func (a AttemptID) Token(secret string) string {
	text := strconv.FormatInt(a.Fence, 10) + "\n" + a.Claim + "\n" + string(a.Key)
	return attemptTokenMark + base64.RawURLEncoding.EncodeToString(append(sealOf(secret, text), text...))
}

// maxTokenBytes is longer than any token of ours.
const maxTokenBytes = 1024

// ParseAttemptToken is the inverse of Token. False: it was not made with this secret.
func ParseAttemptToken(secret, token string) (AttemptID, bool) {
	encoded, ours := strings.CutPrefix(token, attemptTokenMark)
	if !ours || secret == "" || len(token) > maxTokenBytes {
		return AttemptID{}, false
	}
	b, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || len(b) < sha256.Size {
		return AttemptID{}, false
	}
	text := string(b[sha256.Size:])
	if !hmac.Equal(b[:sha256.Size], sealOf(secret, text)) {
		return AttemptID{}, false
	}
	first, rest, _ := strings.Cut(text, "\n")
	claim, key, ok := strings.Cut(rest, "\n")
	fence, err := strconv.ParseInt(first, 10, 64)
	id := AttemptID{Key: Key(key), Fence: fence, Claim: claim}
	return id, ok && err == nil && id.Token(secret) == token // one attempt has one token
}

func sealOf(secret, text string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte("daybook attempt\n" + text)) // never fails
	return h.Sum(nil)
}

// Role says what a token may do.
type Role string

// Roles. Whoever may act may also look.
const (
	RoleView Role = "view"
	RoleAct  Role = "act"
	RolePing Role = "ping" // signs of life only
)

// Roles lists them.
var Roles = []Role{RoleView, RoleAct, RolePing}

// Allows reports whether a token of role r may do what asks for another role.
func (r Role) Allows(want Role) bool { return r == want || r == RoleAct && want == RoleView }

// Token is the record of a token that programs and people show. What they show is kept nowhere, only its fingerprint.
type Token struct {
	Number    int64 // for people: tk_1
	Name      string
	Role      Role
	MadeAt    time.Time
	MadeBy    string
	RevokedAt time.Time
	RevokedBy string
}

// ID is how people name it.
func (t Token) ID() string { return "tk_" + strconv.FormatInt(t.Number, 10) }

// Call is a call over HTTP that brought an Idempotency-Key, and its answer once there is one: whoever makes it again is
// given the same.
type Call struct {
	Caller      string // whose key it is: keys of one do not meet those of another
	Key         string
	Fingerprint string // of what was asked for
	Status      int    // 0: under way
	Header      string // JSON
	Body        string
}
