// The worker of graphile-worker, beside the Go program that measures it. It prints a line for each piece of work that carries
// when it was asked for, "began started" in microseconds, and each 20 ms how many it has started of those that do not, "+n".
// It ends when its input does.
const { run, runMigrations, Logger } = require('graphile-worker')
const { Pool } = require('pg')
const [what, url] = process.argv.slice(2)
const logger = new Logger(() => () => {})
const micros = () => Math.round((performance.timeOrigin + performance.now()) * 1000)

async function main () {
  const pgPool = new Pool({ connectionString: url, max: 16 })
  if (what === 'migrate') {
    await runMigrations({ pgPool, logger })
    return pgPool.end()
  }
  let n = 0
  const tell = () => { if (n > 0) { process.stdout.write(`+${n}\n`); n = 0 } }
  const worker = await run({
    pgPool,
    logger,
    noHandleSignals: true,
    taskList: { noop: ({ t }) => { if (t) process.stdout.write(`${t} ${micros()}\n`); else n++ } },
    preset: { worker: { concurrentJobs: 64, pollInterval: 100, localQueue: { size: 1000 }, completeJobBatchDelay: 5, failJobBatchDelay: 5 } }
  })
  setInterval(tell, 20).unref()
  process.stdout.write('ready\n')
  process.stdin.resume()
  process.stdin.on('end', async () => { await worker.stop(); await pgPool.end(); tell(); process.exit(0) })
}
main().catch(e => { console.error(e); process.exit(1) })
