package alert

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/lang"
	"github.com/daybook-run/daybook/internal/outhttp"
)

// webhookChannel posts each text as signed JSON (Standard Webhooks 1.0.0): {type, timestamp, data}. The type is alert. and
// the kind, alert.recovered for an end; data is Details and the text.
type webhookChannel struct {
	url, secret string
	client      *outhttp.Client
}

const answerBytes = 64 << 10

func newWebhook(s Settings) (Channel, error) {
	if !strings.HasPrefix(s.URL, "https://") && !strings.HasPrefix(s.URL, "http://") {
		return nil, daybook.Invalid("channel %s: the url is not http:// or https:// and a host", s.Name)
	}
	if err := outhttp.Sign(http.Header{}, s.Secret, "check", time.Unix(0, 0), nil); err != nil {
		return nil, daybook.Invalid("channel %s", s.Name).Because(err)
	}
	// The address is the operator's own word, so it may be a private one.
	return &webhookChannel{url: s.URL, secret: s.Secret,
		client: outhttp.New(outhttp.Options{Policy: outhttp.Own, MaxBytes: answerBytes, Timeout: s.Timeout, DialTimeout: s.Timeout})}, nil
}

// envelope is the body. A try has the bytes of the one before.
type envelope struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      struct {
		Details
		Text string `json:"text"`
		Lang string `json:"lang"`
	} `json:"data"`
}

// Send implements Channel. 2xx: sent. 408 409 425 429, 5xx, a redirect (never followed) and what ends without an answer: again
// later. Any other 4xx, 410 among them: for good not.
func (c *webhookChannel) Send(ctx context.Context, m Message) error {
	e := envelope{Type: "alert." + string(m.Details.Kind), Timestamp: m.MadeAt.UTC()}
	if m.Details.Recovered != nil {
		e.Type = "alert.recovered"
	}
	e.Data.Details, e.Data.Text, e.Data.Lang = m.Details, m.Body, m.Lang
	body, err := json.Marshal(e)
	if err != nil {
		return daybook.Permanent(err)
	}
	header := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"daybook"}}
	// Numbers of alerts begin anew in every ledger, ids of rows do not.
	id := outhttp.WebhookID(m.Alert + "/" + m.Key)
	if err := outhttp.Sign(header, c.secret, id, m.Now, body); err != nil {
		return daybook.Permanent(err)
	}
	answer, err := c.client.Do(ctx, outhttp.Request{Method: http.MethodPost, URL: c.url, Header: header, Body: body})
	if err != nil {
		return err
	}
	switch outhttp.ResultOfStatus(answer.Status, nil) {
	case daybook.ResultDone:
		return nil
	case daybook.ResultPermanent:
		return daybook.Permanent(refusal(answer))
	}
	return daybook.RetryAfter(answer.RetryAfter(m.Now), refusal(answer))
}

func refusal(a *outhttp.Answer) error {
	text := a.StatusLine()
	if said := oneLine(strings.ToValidUTF8(string(a.Body), "\uFFFD")); said != "" {
		text += ": " + lang.CutChars(said, 200)
	}
	return fmt.Errorf("the receiver answered %s", text)
}
