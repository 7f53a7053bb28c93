// Package importer reads the schedules of other schedulers, crontabs and systemd timers, and writes a daybook.yaml that
// says the same: the same fires, the same commands, every job paused, and a comment wherever the other one was odd. It is
// pure: the command line reads files and directories and gives it their texts, and it starts and changes nothing.
//
// Where to find what: importer.go (what comes in and goes out), file.go and yaml.go (how the file is written), crontab.go,
// cronfields.go and command.go (crontab(5), as Vixie cron, Debian's cron and cronie read it), name.go (what a job is called),
// units.go, timer.go, service.go and oncalendar.go (systemd.timer(5) and systemd.time(7)).
package importer
