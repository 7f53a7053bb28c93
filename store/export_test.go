package store

// Statements are the texts whose plans are looked at, by name.
var Statements = map[string]string{
	"selectDue": selectDue, "selectOneDue": selectOneDue, "claimRuns": claimRuns, "renewLeases": renewLeases, "selectHolding": selectHolding, "markRuns": markRuns, "markRun": markRun,
	"moveLive": moveLive, "takeLive": takeLive, "endRuns": endRuns, "moveLiveRow": moveLiveRow, "takeLiveRow": takeLiveRow, "endRunsRow": endRunsRow, "upsertSteps": upsertSteps, "denyStep": denyStep,
	"selectNextDue": selectNextDue, "selectExpired": selectExpired,
	"selectRun": selectRun, "selectAsked": selectAsked, "selectFree": selectFree, "selectJob": selectJob, "selectRunsIn": selectRunsIn, "selectStepsIn": selectStepsIn, "selectLetterOf": selectLetterOf,
	"selectStandings": selectStandings, "selectLiveOfJobs": selectLiveOfJobs, "selectKeysIn": selectKeysIn, "moveCursors": moveCursors,
	"countTriggers": countTriggers, "countTrigger": countTrigger, "selectSpanAt": selectSpanAt, "selectSpans": selectSpans, "selectSpansOf": selectSpansOf,
	"selectNewest": selectNewest, "selectLive": selectLive, "selectNewestLive": selectNewestLive, "selectLastGood": selectLastGood, "selectHighestN": selectHighestN,
	"selectOld": selectOld, "selectNth": selectNth, "pruneAttempts": pruneAttempts, "pruneOutputs": pruneOutputs, "pruneSteps": pruneSteps,
	"pruneTriggers": pruneTriggers, "pruneRuns": pruneRuns, "selectSpent": selectSpent, "pruneTexts": pruneTexts, "holdPaused": holdPaused, "holdKeys": holdKeys,
	"selectAttempts": selectAttempts, "selectTriggers": selectTriggers, "selectOpenLetters": selectOpenLetters, "selectOpenAlerts": selectOpenAlerts,
	"selectActivityAfter": selectActivityAfter,
	"selectFanout":        selectFanout, "selectAnyLook": selectAnyLook, "letGo": letGo, "letGoParked": letGoParked, "park": park, "letGoHolder": letGoHolder, "selectDropped": selectDropped, "askUntriedToEnd": askUntriedToEnd, "letGoDropped": letGoDropped, "unpark": unpark, "selectEnds": selectEnds, "insertHeld": insertHeld, "deleteEnds": deleteEnds, "selectEnded": selectEnded,
	"selectLooks": selectLooks, "selectUnstarted": selectUnstarted, "selectSubjectLocks": selectSubjectLocks, "selectAhead": selectAhead, "selectFailedSince": selectFailedSince, "selectCancelledWith": selectCancelledWith, "selectReplayable": selectReplayable, "countChildren": countChildren,
	"countLiveChildren": countLiveChildren, "countChildLetters": countChildLetters, "listAgain": listAgain, "selectResting": selectResting, "setRests": setRests,
	"closeAlerts": closeAlerts, "selectLocksOf": selectLocksOf, "holdLocksOf": holdLocksOf, "insertLocks": insertLocks, "parkSerial": parkSerial,
	"deleteLocks": deleteLocks, "wakeSerial": wakeSerial, "selectWaited": selectWaited, "refuseLetter": refuseLetter, "insertAlert": insertAlert,
	"tallyRuns": tallyRuns, "tallyLive": tallyLive, "tallySteps": tallySteps, "firstDone": firstDone, "endDrillAlerts": endDrillAlerts,
	"selectTroubled": selectTroubled, "selectUndone": selectUndone, "selectFrozenDue": selectFrozenDue, "selectOneFrozen": selectOneFrozen, "putOff": putOff, "selectLanding": selectLanding,
	"selectFrozenEnds": selectFrozenEnds, "thaw": thaw, "thawPart": thawPart, "countFrozen": countFrozen, "selectFrozen": selectFrozen,
	"selectMovable": selectMovable, "openSharedAlert": openSharedAlert, "releaseRestored": releaseRestored,
}

// Rewritten returns a statement as a database wants it.
func Rewritten(database, text string) string {
	if database == "postgres" {
		return rewritePostgres(text)
	}
	return rewriteSQLite(text)
}

// Waiting is how many wait to have a mark written by the next transaction.
func Waiting(s *Store) int {
	s.marking.mu.Lock()
	defer s.marking.mu.Unlock()
	return len(s.marking.waiting)
}

// Knocking is how many triggers wait for one that is being written.
func Knocking(s *Store) int {
	s.knocking.mu.Lock()
	defer s.knocking.mu.Unlock()
	return len(s.knocking.waiting)
}
