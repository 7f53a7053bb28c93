package main

import (
	"slices"
	"strings"

	"github.com/daybook-run/daybook/internal/lang"
)

// language chooses the language of a call: --lang, DAYBOOK_LANG, then the locale of the machine (LC_ALL, LC_MESSAGES,
// LANG, the first that is set), else English. It reads the arguments before the flags are parsed, because help and what is
// wrong with a flag are said in it too. An unknown --lang is told later; an unknown DAYBOOK_LANG, which may stand in a
// crontab, must not keep a job from running.
func (a *app) language(args []string) lang.Printer {
	if l := flagValue(args, "--lang"); slices.Contains(lang.Languages, l) {
		return lang.For(l)
	}
	env := func(name string) string {
		value, _ := a.LookupEnv(name)
		return value
	}
	locale := ""
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if locale = env(name); locale != "" {
			break
		}
	}
	return lang.For(lang.Match(env("DAYBOOK_LANG"), locale))
}

// flagValue returns the last value that a flag has among arguments; behind -- stand the words of another program.
func flagValue(args []string, flag string) (value string) {
	for i, arg := range args {
		switch {
		case arg == "--":
			return value
		case arg == flag && i+1 < len(args):
			value = args[i+1]
		case strings.HasPrefix(arg, flag+"="):
			value = arg[len(flag)+1:]
		}
	}
	return value
}
