package main

import "github.com/spf13/cobra"

// commands lists every command, in the order of the documentation. A new one is a file with a constructor, and a line
// here.
var commands = []func(*app) *cobra.Command{
	newStatus,
	newServe,
	newInit,
	newCheck,
	newOnce,
	newSchedule,
	newJob,
	newRun,
	newKey,
	newDead,
	newStep,
	newEffect,
	newFreeze,
	newDrill,
	newAlert,
	newActivity,
	newExport,
	newToken,
	newImport,
	newDB,
	newDoctor,
	newCompletion,
	newMan,
	newVersion,
	newDemo,
	newDemoGateway,
	newDemoShop,
}
