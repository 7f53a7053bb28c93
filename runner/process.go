package runner

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// process is a started command, the leader of a process group of its own.
type process struct {
	cmd    *exec.Cmd
	pgid   int           // and its pid
	begun  uint64        // when it started, and
	boot   string        // in which life of the machine: see processIdentity
	exited chan struct{} // closed once the leader has been waited for; its siblings and children may live on
	pipes  []*pipe
	stdin  *os.File
}

// pipe is one of the streams that are read from a process.
type pipe struct {
	out  *os.File
	done chan struct{} // closed once nothing more is read
}

// ending says how a process came to its end.
type ending struct {
	cause  error // why it was asked to end; nil: it ended by itself
	forced bool  // KILL was sent
	gaveUp bool  // even so it did not end
}

// start starts cmd with stdin as its input, and reads its output into the writers: one for stdout and stderr together,
// or two, one each.
func start(cmd *exec.Cmd, stdin string, writers ...io.Writer) (*process, error) {
	p := &process{cmd: cmd, exited: make(chan struct{})}
	var theirs []*os.File // the child's ends, closed here once it has them
	defer func() { closeAll(theirs) }()
	for range writers {
		r, w, err := os.Pipe()
		if err != nil {
			p.closePipes()
			return nil, unavailable(nil, "could not start %s: %s", quote(cmd.Args[0]), reason(err))
		}
		p.pipes = append(p.pipes, &pipe{out: r, done: make(chan struct{})})
		theirs = append(theirs, w)
	}
	cmd.Stdout, cmd.Stderr = theirs[0], theirs[len(theirs)-1]
	if stdin != "" {
		r, w, err := os.Pipe()
		if err != nil {
			p.closePipes()
			return nil, unavailable(nil, "could not start %s: %s", quote(cmd.Args[0]), reason(err))
		}
		theirs = append(theirs, r)
		cmd.Stdin, p.stdin = r, w
	}
	if err := cmd.Start(); err != nil {
		p.closePipes()
		return nil, startFault(cmd, err)
	}
	p.pgid = cmd.Process.Pid
	p.begun, p.boot = processIdentity(p.pgid) // before it is waited for, while even the dead have one
	p.serve(stdin, writers)
	return p, nil
}

// serve starts what goes on beside the process. All of it ends with collect.
func (p *process) serve(stdin string, writers []io.Writer) {
	go func() {
		_ = p.cmd.Wait() // how it ended is read from cmd.ProcessState
		close(p.exited)
	}()
	for i, pipe := range p.pipes {
		go pipe.read(writers[i])
	}
	if p.stdin != nil {
		go func() {
			// A command that does not read its input is no failure: it was offered.
			_, _ = io.Copy(p.stdin, strings.NewReader(stdin))
			_ = p.stdin.Close()
		}()
	}
}

func (p *pipe) read(w io.Writer) {
	defer close(p.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := p.out.Read(buf)
		_, _ = w.Write(buf[:n])
		if err != nil {
			return
		}
	}
}

func (p *process) closePipes() {
	for _, pipe := range p.pipes {
		_ = pipe.out.Close()
	}
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// pollEvery is how often the end of processes that are not our children is looked for.
const pollEvery = 20 * time.Millisecond

// await waits for the end of the leader. When ctx is cancelled first, the whole group is asked to end; what is left of
// it after grace is killed. A grace of zero kills at once.
func (p *process) await(ctx context.Context, grace, giveUp time.Duration) ending {
	select {
	case <-p.exited:
		return ending{}
	case <-ctx.Done():
	}
	select {
	case <-p.exited: // both at once: it ended by itself, and its children are let be
		return ending{}
	default:
	}
	end := ending{cause: context.Cause(ctx)}
	if grace > 0 {
		p.signal(syscall.SIGTERM)
		p.signal(syscall.SIGCONT) // a stopped process would not see the TERM
		if p.gone(grace) {
			return end
		}
	}
	end.forced = true
	p.signal(syscall.SIGKILL)
	timer := time.NewTimer(giveUp)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		end.gaveUp = true // stuck in the kernel, or started with rights that we lack
	}
	return end
}

// gone waits until the leader has ended and its group is empty, at most limit.
func (p *process) gone(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		return false
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for groupAlive(p.pgid) {
		select {
		case <-tick.C:
		case <-timer.C:
			return false
		}
	}
	return true
}

func (p *process) signal(sig syscall.Signal) { _ = syscall.Kill(-p.pgid, sig) }

// collect reads what is left of the output, and stops once nothing has ended it within wait: a child that outlives the
// command may hold the pipe open for ever. It reports whether the pipe was still held.
func (p *process) collect(wait time.Duration) (held bool) {
	if p.stdin != nil {
		_ = p.stdin.Close() // frees whoever still offers the input
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for _, pipe := range p.pipes {
		if !held {
			select {
			case <-pipe.done:
			case <-timer.C:
				held = true
			}
		}
		_ = pipe.out.Close()
		<-pipe.done
	}
	return held
}

// groupExists reports whether a signal could be sent to anybody in the group, the dead that nobody has waited for
// included.
func groupExists(pgid int) bool { return !errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH) }
