package outhttp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
)

var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// WebhookID is the id that a receiver knows a repeated message by. Equal keys have equal ids, and an id has no dot.
func WebhookID(messageKey string) string {
	sum := sha256.Sum256([]byte(messageKey))
	return "msg_" + lowerBase32.EncodeToString(sum[:])
}

// Sign sets the headers of Standard Webhooks 1.0.0 for a body: webhook-id, webhook-timestamp and webhook-signature. The
// secret is "whsec_" and base64, or base64 alone; several, with white space between them, sign side by side while one is
// replaced by the next. Errors have CodeInvalid and do not name the secret.
func Sign(h http.Header, secret, id string, at time.Time, body []byte) error {
	secrets := strings.Fields(secret)
	if len(secrets) == 0 {
		return daybook.Invalid("the secret of the signature is empty")
	}
	if id == "" || strings.Contains(id, ".") {
		return daybook.Invalid("a webhook-id must have no dot and not be empty")
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, text := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
		if err != nil || len(key) == 0 {
			return daybook.Invalid("the secret of the signature is not base64").
				WithHint("it is whsec_ and the base64 of 24 to 64 random bytes")
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + stamp + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", stamp)
	h.Set("webhook-signature", strings.Join(signatures, " "))
	return nil
}
