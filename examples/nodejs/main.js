// Schedules, reads and handles a timer over the gRPC service wakebell.v1.Timers.
// README.md describes how to run it.
'use strict';

const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const [address, topic, protos] = process.argv.slice(2);
const {wakebell} = grpc.loadPackageDefinition(loader.loadSync('messages/services.proto', {
  includeDirs: [protos], keepCase: true, longs: String, enums: String, defaults: true,
}));

const {Timers} = wakebell.v1;
const client = new Timers(address, grpc.credentials.createInsecure()); // not on loopback: createSsl()
const credentials = new grpc.Metadata();
credentials.set('authorization', `Bearer ${process.env.WAKEBELL_TOKEN}`);

// ask makes one call. An error has the gRPC code and the text of the Error.
const ask = (method, request) => new Promise((resolve, reject) => {
  const deadline = Date.now() + 10_000;
  client[method](request, credentials, {deadline}, (err, answer) => (err ? reject(err) : resolve(answer)));
});

// subscribe passes leases to handle, and answers with the verdicts.
function subscribe(name, credits, handle) {
  const session = client.Session(credentials);
  const send = (...commands) => session.write({commands});
  const settle = async (lease) => {
    const verdict = {id: lease.id};
    // A lease is extended at a third of its duration for as long as handle runs.
    const seconds = Number(lease.ttl.seconds) + lease.ttl.nanos / 1e9;
    const extend = setInterval(() => {
      send({verdicts: {topic, subscriber: name, verdicts: [{id: lease.id, extend: {delivery: lease.delivery}}]}});
    }, seconds * 1000 / 3);
    try {
      await handle(lease);
      verdict.ack = {delivery: lease.delivery};
    } catch (err) {
      verdict.nack = {delivery: lease.delivery, reason: String(err)};
    }
    clearInterval(extend);
    send({verdicts: {topic, subscriber: name, verdicts: [verdict]}});
  };
  session.on('data', ({replies}) => {
    for (const reply of replies) {
      if (reply.leases) reply.leases.leases.forEach(settle);
      if (reply.error) session.destroy(new Error(reply.error.message));
    }
  });
  session.on('error', (err) => { // your program subscribes again after a delay
    console.error(err.message);
    process.exit(1);
  });
  send({subscribe: {request: 1, topic, subscriber: name, credits}});
  return session;
}

async function main() {
  const key = 'order-42'; // a retry within a day is not carried out again
  const scheduled = await ask('Schedule', {
    topic, id: 'js-1', key, in: {seconds: 1}, content_type: 'application/json', body: Buffer.from('{"n":42}'),
  });
  console.log('scheduled', scheduled.id);
  const {timer} = await ask('GetTimer', {topic, id: 'js-1'});
  console.log('its body is', timer.content.body.toString());
  await ask('GetTimer', {topic, id: 'none'}).catch((err) => console.log('none:', grpc.status[err.code]));

  const session = subscribe('js', 10, async (lease) => {
    console.log('handle', lease.id, lease.body.toString(), 'attempt', lease.attempt);
    if (lease.attempt === 1) throw new Error('not yet');
    setImmediate(() => session.end()); // a real program keeps running
  });
  session.on('end', () => client.close());
}

main().catch((err) => {
  console.error(err.message);
  process.exit(1);
});
