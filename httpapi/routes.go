package httpapi

import (
	"net/http"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/control"
)

// route is one thing that can be asked for. The OpenAPI document is made of what stands here.
type route struct {
	method, path string // the path as http.ServeMux has it
	does         string // one sentence
	needs        right
	limit        int64       // bytes of the body; 0: there is none
	body         any         // a value of the type of the body
	answers      map[int]any // what can be answered beside problems: a value of the type, by status
	do           func(a *api, c *call) (answer, error)
}

// Limits of bodies: what is in them besides the one long thing is short.
const (
	room       = 16 << 10
	askLimit   = daybook.MaxPayloadBytes + room
	reportSize = daybook.MaxResultBytes
	endLimit   = 4*(daybook.MaxResultBytes+daybook.MaxOutputBytes) + room // JSON writes a character in up to six bytes, few of them
)

// routes is the table. It is never changed.
var routes = []*route{
	{
		method: http.MethodPost, path: "/api/v1/jobs/{job}/trigger", needs: actor, limit: askLimit, body: triggerBody{}, do: (*api).trigger,
		does:    "Ask for a key of a job: 201 started, 202 under way, 200 known already; refused is 409, or 422 with another payload than before.",
		answers: map[int]any{200: control.AnswerJSON{}, 201: control.AnswerJSON{}, 202: control.AnswerJSON{}},
	},
	{
		method: http.MethodGet, path: "/api/v1/runs/{key...}", needs: viewer, do: (*api).run,
		does:    "The record of a key: its state, its result, its dead letter.",
		answers: map[int]any{200: control.RunJSON{}},
	},
	{
		method: http.MethodPost, path: "/api/v1/runs/resolve", needs: actor, limit: reportSize + room, body: resolveBody{}, do: (*api).resolve,
		does:    "Settle an effect whose outcome is unknown, by your word: it was done, perhaps with this result, it was not, or the probe is asked again. 409: no outcome waits for that.",
		answers: map[int]any{200: control.ActedJSON{}},
	},
	{
		method: http.MethodGet, path: "/api/v1/dead/plan", needs: viewer, do: (*api).replayPlan,
		does:    "The dead letters that can be replayed, as a plan with an id: ?job=J.",
		answers: map[int]any{200: control.ReplayPlanJSON{}},
	},
	{
		method: http.MethodPost, path: "/api/v1/dead/replay", needs: actor, limit: room, body: replayBody{}, do: (*api).replay,
		does:    "Replay exactly the letters that a plan showed, each under its key. 409: the plan is stale.",
		answers: map[int]any{200: replayedJSON{}},
	},
	{
		method: http.MethodPost, path: "/api/v1/callbacks/{key...}", needs: worker, limit: reportSize, body: reportBody{}, do: (*api).callback,
		does:    "The one report of an HTTP job that answered 202: its address is the header Daybook-Callback of the request. No body means done.",
		answers: map[int]any{200: reportedJSON{}},
	},
	{
		method: http.MethodPost, path: "/api/v1/claims", needs: actor, limit: askLimit, body: claimBody{}, do: (*api).claim,
		does:    "Claim a key to do its work: 201 with the right to, 202 under way or not now, 200 known already; refused is 409, or 422 with another payload than before.",
		answers: map[int]any{200: claimJSON{}, 201: claimJSON{}, 202: claimJSON{}},
	},
	{
		method: http.MethodPost, path: "/api/v1/claims/renew", needs: worker, limit: room, body: renewBody{}, do: (*api).renew,
		does:    "Keep a claim for another lease. 409: it is not held any more.",
		answers: map[int]any{200: renewedJSON{}},
	},
	{
		method: http.MethodPost, path: "/api/v1/claims/end", needs: worker, limit: endLimit, body: endBody{}, do: (*api).end,
		does:    "Report the end of a claimed try. 409: the run has moved on, or it was reported before.",
		answers: map[int]any{200: reportedJSON{}},
	},
	{
		method: http.MethodPost, path: "/api/v1/steps/begin", needs: worker, limit: room, body: stepBody{}, do: (*api).stepBegin,
		does:    "Come to a step of the attempt: begun, to be done now under the wire key; done, with its result; or unknown, which is settled first.",
		answers: map[int]any{200: stepJSON{}},
	},
	{
		method: http.MethodPost, path: "/api/v1/steps/end", needs: worker, limit: reportSize + room, body: stepEndBody{}, do: (*api).stepEnd,
		does:    "Tell how a step ended.",
		answers: map[int]any{200: stepJSON{}},
	},
	{
		method: http.MethodPost, path: "/api/v1/steps/found", needs: worker, limit: reportSize + room, body: stepFoundBody{}, do: (*api).stepFound,
		does:    "Tell what the far side said of an open effect that the caller can ask for.",
		answers: map[int]any{200: stepJSON{}},
	},
	{
		method: http.MethodPost, path: "/api/v1/drills", needs: actor, limit: room, body: drillBody{}, do: (*api).drill,
		does:    "Ask for a done key again by several doors, to see that nothing comes of it. 409: the key is not done.",
		answers: map[int]any{200: control.DrillJSON{}},
	},
	{
		method: http.MethodGet, path: "/api/v1/drills", needs: viewer, do: (*api).drills,
		does:    "What was drilled, newest first: ?job=J&limit=N.",
		answers: map[int]any{200: drillsJSON{}},
	},
	{
		method: http.MethodGet, path: "/api/v1/freezes", needs: viewer, do: (*api).freezes,
		does:    "What keeps runs from starting, what comes, and what is held.",
		answers: map[int]any{200: control.FreezesJSON{}},
	},
	{
		method: http.MethodPost, path: "/api/v1/freezes", needs: actor, limit: room, body: freezeBody{}, do: (*api).startFreeze,
		does:    "Let nothing start from now on, for a while. 409: a freeze of this name stands.",
		answers: map[int]any{201: control.FreezeJSON{}},
	},
	{
		method: http.MethodPost, path: "/api/v1/freezes/{name}/end", needs: actor, limit: room, body: reasonBody{}, do: (*api).endFreeze,
		does:    "End a freeze, or a hold that Daybook put up. What was held starts, spread.",
		answers: map[int]any{200: endedJSON{}},
	},
	{
		method: http.MethodGet, path: "/api/v1/freezes/check", needs: viewer, do: (*api).checkFreeze,
		does:    "Whether P0 work is under way now, or starts or is tried again within ?for=31m.",
		answers: map[int]any{200: control.FreezeCheckJSON{}},
	},
	{
		method: http.MethodGet, path: "/status.txt", needs: viewer, do: (*api).statusText,
		does:    "OK, or 503 with NOT OK or UNKNOWN, and why.",
		answers: map[int]any{200: ""},
	},
	{
		method: http.MethodGet, path: "/status.json", needs: viewer, do: (*api).status,
		does:    "Did everything run, is the money right, what needs a person.",
		answers: map[int]any{200: control.StatusJSON{}},
	},
	{
		method: http.MethodGet, path: "/api/v1/nodes", needs: viewer, do: (*api).nodes,
		does:    "The processes that work on the ledger, whether they live, and in what they differ.",
		answers: map[int]any{200: control.NodesJSON{}},
	},
	{
		method: http.MethodGet, path: "/healthz", do: (*api).healthz,
		does:    "The process lives.",
		answers: map[int]any{200: ""},
	},
	{
		method: http.MethodGet, path: "/readyz", do: (*api).readyz,
		does:    "The ledger answers.",
		answers: map[int]any{200: ""},
	},
	{
		method: http.MethodGet, path: "/api/v1/openapi.json", do: (*api).openAPI,
		does:    "This document.",
		answers: map[int]any{200: map[string]any{}},
	},
}
