// Adds jobs in bulk and handles them, and prints the figures of both as JSON.
// Usage: node bench.mjs PORT JOBS CONCURRENCY BATCH [RATE [LIMIT]]
// With a RATE above 0 the jobs are delayed to instants evenly spread, so many a second. With
// LIMIT the worker starts at most so many a second.
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';

const [port, jobs, concurrency, batch, rate, limit] = process.argv.slice(2).map(Number);
// Each of them uses a client of its own.
const connect = () => new Redis({ host: '127.0.0.1', port, maxRetriesPerRequest: null });
const queue = new Queue('bench', { connection: connect(), defaultJobOptions: { removeOnComplete: true } });
await queue.waitUntilReady();
const redis = connect();

// read is what the meters show: CPU of this process and of Redis in µs, the
// commands that Redis ran, the time in ms.
async function read() {
  const info = await redis.info();
  const field = (name) => Number(info.match(new RegExp(`^${name}:([\\d.]+)`, 'm'))[1]);
  const cpu = process.cpuUsage();
  return {
    at: performance.now(), client: cpu.user + cpu.system, commands: field('total_commands_processed'),
    redis: (field('used_cpu_user') + field('used_cpu_sys')) * 1e6,
  };
}

function between(before, after) {
  const seconds = (after.at - before.at) / 1e3;
  return {
    rate: jobs / seconds, seconds, client_us: (after.client - before.client) / jobs,
    redis_us: (after.redis - before.redis) / jobs, commands_per: (after.commands - before.commands) / jobs,
  };
}

const data = 'x'.repeat(100);
const start = await read();
const first = Date.now() + 3000 + jobs / 15; // ms: enough for adding them
for (let from = 0; from < jobs; from += batch) {
  const bulk = [];
  for (let i = from; i < Math.min(from + batch, jobs); i++) {
    const opts = rate ? { delay: Math.max(0, Math.round(first + (i * 1000) / rate - Date.now())) } : {};
    bulk.push({ name: 'bench', data, opts });
  }
  await queue.addBulk(bulk);
}
if (rate) await new Promise((resolve) => setTimeout(resolve, first - 1000 - Date.now()));
const added = await read();

let handled = 0;
let worker;
await new Promise((resolve, reject) => {
  worker = new Worker('bench', async () => {}, { connection: connect(), concurrency, ...(limit && { limiter: { max: limit, duration: 1000 } }) });
  worker.on('completed', () => { if (++handled === jobs) resolve(); });
  worker.on('error', reject);
});
const done = await read();
console.log(JSON.stringify({ add: between(start, added), handle: between(added, done) }));
await worker.close();
await queue.close();
process.exit(0);
