package daybook

import "encoding/json"

// Asking is what a program says when it asks for a key of a job.
type Asking struct {
	Window  string          // the label, perhaps with ~n; empty: the window of the latest fire already past
	Actor   string          // who asks, for the record; empty: the application
	Payload json.RawMessage // nil: none
}

// AskOption says one thing about an Asking.
type AskOption func(*Asking) error

// NewAsking returns what the options say. Errors have CodeInvalid.
func NewAsking(options ...AskOption) (Asking, error) {
	var a Asking
	for _, o := range options {
		if err := o(&a); err != nil {
			return Asking{}, err
		}
	}
	return a, nil
}

// At asks for the window with a label: At("2026-10-26"), At("2026-W43").
func At(label string) AskOption {
	return func(a *Asking) error {
		if label == "" {
			return Invalid("the window is empty").WithHint("leave At out to ask for the window of the latest fire already past")
		}
		a.Window = label
		return nil
	}
}

// By names who asks.
func By(actor string) AskOption {
	return func(a *Asking) error {
		a.Actor = actor
		return nil
	}
}

// WithPayload gives v, as JSON, to the work. Whoever asks for the same key again with another payload is refused.
func WithPayload(v any) AskOption {
	return func(a *Asking) error {
		b, err := json.Marshal(v)
		if err != nil {
			return Invalid("the payload is not JSON").Because(err)
		}
		a.Payload = b
		return nil
	}
}
