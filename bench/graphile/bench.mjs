// Adds jobs in bulk and handles them, and prints the figures of both as JSON.
// Usage: node bench.mjs SOCKETS JOBS CONCURRENCY
// SOCKETS is the folder of the socket of a PostgreSQL. Fetching and completing in batches is
// switched on, as in graphile-worker's own figures.
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import pg from 'pg';

const [sockets] = process.argv.slice(2);
const [jobs, concurrency] = process.argv.slice(3).map(Number);
const pgPool = new pg.Pool({ host: sockets, user: 'postgres', database: 'postgres', max: concurrency + 1 });
pgPool.on('error', () => {}); // connections end with the process
pgPool.on('connect', (client) => client.on('error', () => {}));
const logger = new Logger(() => () => {});

const preset = {
  worker: {
    concurrentJobs: concurrency, maxPoolSize: concurrency + 1, localQueue: { size: 500 },
    completeJobBatchDelay: 0, failJobBatchDelay: 0, fileExtensions: ['.js'],
  },
};
const utils = await makeWorkerUtils({ pgPool, logger });
await utils.migrate();
await pgPool.query('delete from graphile_worker._private_jobs');

function read() {
  const cpu = process.cpuUsage();
  return { at: performance.now(), client: cpu.user + cpu.system };
}

function between(before, after) {
  return { rate: (jobs * 1e3) / (after.at - before.at), client_us: (after.client - before.client) / jobs };
}

const start = read();
const body = { body: 'x'.repeat(89) };
for (let from = 0; from < jobs; from += 5000) {
  const batch = Array.from({ length: Math.min(5000, jobs - from) }, () => ({ identifier: 'bench', payload: body }));
  await utils.addJobs(batch);
}
await pgPool.query('analyze graphile_worker._private_jobs');
const added = read();

// The caller reads PostgreSQL's CPU time between the two lines.
console.log(JSON.stringify({ add: between(start, added) }));
await new Promise((resolve) => process.stdin.once('data', resolve));
const begin = read();
let handled = 0;
const runner = await run({ pgPool, logger, preset, noHandleSignals: true, taskList: { bench: async () => { handled++; } } });
for (;;) {
  await new Promise((resolve) => setTimeout(resolve, 2));
  if (handled < jobs) continue;
  const left = await pgPool.query('select exists (select from graphile_worker._private_jobs) as some');
  if (!left.rows[0].some) break;
}
const done = read();
console.log(JSON.stringify({ handle: between(begin, done) }));
await new Promise((resolve) => process.stdin.once('data', resolve));
await runner.stop();
process.exit(0);
