package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const (
	asynqWorkers = 64
	asynqCheck   = 10 * time.Millisecond
	asynqCallers = 64 // who fill, at once: there is no batch
)

// asynqPeer is asynq on a Redis of its own. Only appendfsync always is as durable as the others: what was answered is on the
// disk. everysec, which is what most have, may forget a second.
type asynqPeer struct {
	addr, appendfsync, server string
	client                    *asynq.Client
	redis                     *redis.Client
}

func openAsynq(appendfsync string) func(context.Context, *place) (peer, error) {
	return func(ctx context.Context, p *place) (peer, error) {
		addr, err := p.redis(ctx, appendfsync)
		if err != nil {
			return nil, err
		}
		a := &asynqPeer{addr: addr, appendfsync: appendfsync, redis: redis.NewClient(&redis.Options{Addr: addr})}
		a.server = infoField(a.redis.Info(ctx, "server").Val(), "redis_version")
		return a, nil
	}
}

func (a *asynqPeer) about() about {
	durable := "as durable as the others"
	if a.appendfsync != "always" {
		durable = "less durable: a power cut forgets a second"
	}
	return about{Name: "asynq, " + a.appendfsync, Store: onRedis, Version: version("github.com/hibiken/asynq") + ", Redis " + a.server, Share: 0.2, InProcess: true,
		Settings: fmt.Sprintf("appendonly, appendfsync %s (%s); Concurrency %d, TaskCheckInterval %s; filled by %d callers", a.appendfsync, durable, asynqWorkers, asynqCheck, asynqCallers),
		Keeps:    "nothing"}
}

func (a *asynqPeer) reset(ctx context.Context) error {
	if err := a.close(); err != nil {
		return err
	}
	a.client = asynq.NewClient(asynq.RedisClientOpt{Addr: a.addr, PoolSize: asynqCallers})
	return a.redis.FlushAll(ctx).Err()
}

const asynqNoSteps cannot = "records no steps, and marks nothing before an effect"

func (a *asynqPeer) insert(ctx context.Context, w work, began time.Time) error {
	if w.Kind != noop.Kind {
		return asynqNoSteps
	}
	_, err := a.client.EnqueueContext(ctx, asynq.NewTask("noop", binary.LittleEndian.AppendUint64(nil, uint64(began.UnixNano()))))
	return err
}

func (a *asynqPeer) fill(ctx context.Context, w work, n int) error {
	return fillOneByOne(ctx, a, w, n, asynqCallers)
}

// fillOneByOne fills a peer that has no batch, from so many callers.
func fillOneByOne(ctx context.Context, p peer, w work, n, callers int) error {
	errs := make(chan error, callers)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := c; i < n; i += callers {
				if err := p.insert(ctx, w, time.Unix(0, 0)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}

func (a *asynqPeer) start(_ context.Context, w work, started func(time.Time)) (func() error, error) {
	if w.Kind != noop.Kind {
		return nil, asynqNoSteps
	}
	s := asynq.NewServer(asynq.RedisClientOpt{Addr: a.addr, PoolSize: asynqWorkers + 16}, asynq.Config{Concurrency: asynqWorkers, TaskCheckInterval: asynqCheck, LogLevel: asynq.FatalLevel})
	err := s.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		started(fromNano(int64(binary.LittleEndian.Uint64(t.Payload()))))
		return nil
	}))
	return func() error { s.Shutdown(); return nil }, err
}

func (a *asynqPeer) left(ctx context.Context) (n int, err error) {
	for _, list := range []string{"pending", "active"} {
		some, err := a.redis.LLen(ctx, "asynq:{default}:"+list).Result()
		if err != nil {
			return 0, err
		}
		n += int(some)
	}
	return n, nil
}

// counts are those of its Redis.
func (a *asynqPeer) counts(ctx context.Context) (n counts, err error) {
	text, err := a.redis.Info(ctx, "stats", "persistence").Result()
	if err != nil {
		return n, err
	}
	if n.statements, err = strconv.ParseFloat(infoField(text, "total_commands_processed"), 64); err != nil {
		return n, err
	}
	n.bytes, err = strconv.ParseFloat(infoField(text, "aof_current_size"), 64)
	return n, err
}

func (a *asynqPeer) close() error {
	if a.client == nil {
		return nil
	}
	client := a.client
	a.client = nil
	return client.Close()
}
