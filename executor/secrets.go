package executor

import (
	"fmt"

	"github.com/daybook-run/daybook"
)

// SecretsOf are the values in the environment of an attempt that are not written in the definition itself: what its
// references stand for.
func SecretsOf(job *daybook.Job, env map[string]string) []string {
	var list []string
	for name, value := range env {
		if written, ok := job.Env[name]; !ok || written != value {
			list = append(list, value)
		}
	}
	return list
}

// Secrets are the values that must not show in what is kept of a job, as this process knows them; none when it does not do
// the job. An error: they cannot be looked up.
func (x *Executor) Secrets(job string) ([]string, error) {
	work, ok := x.o.Work(job)
	if !ok {
		return nil, nil
	}
	env, err := environment(work)
	return SecretsOf(work.Job, env), err
}

// reportOf is what a process that outlived its daybook left as its report, without the secrets of its job. When those
// cannot be looked up, nothing can be masked, and nothing that it said is kept. In the directory of an undo lies at most the
// report of one effect that it took back, which is not its own.
func (x *Executor) reportOf(r *daybook.Run, dir string) daybook.Outcome {
	o, ok := x.o.Survivor.Report(dir)
	if !ok || r.Key.IsUndo() {
		return daybook.Outcome{Result: daybook.ResultLost, Error: "nobody reported how it ended, and it left no report"}
	}
	work, ok := x.o.Work(r.Job)
	if !ok {
		return o // defined nowhere here: nothing says that it has secrets
	}
	env, err := environment(work)
	if err != nil {
		said := "what it printed is not kept: the secrets of the job could not be read to mask them"
		return daybook.Outcome{Result: o.Result, Exit: o.Exit, RetryAfter: o.RetryAfter, Interrupted: o.Interrupted,
			Error: fmt.Sprintf("%s (%v)", said, err), Output: daybook.Output{Text: said + "\n"}}
	}
	return o.Mask(SecretsOf(work.Job, env))
}
