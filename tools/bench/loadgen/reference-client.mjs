// The most that this machine and undici allow a client: requests over raw sockets, or through undici's dispatch with a
// handler that does nothing, in a closed loop; or at a rate, for the latencies that nothing was added to. Prints JSON.
//
//   node reference-client.mjs raw|undici PORT SECONDS BODY CONNECTIONS
//   node reference-client.mjs paced-raw|paced-undici PORT SECONDS BODY REQUESTS_PER_SECOND
//
// The paced ones run a round for each line that they read, over the same connections, and print what it gave.
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import undici from 'undici';

const [kind, port, seconds, body, load] = process.argv.slice(2);
const path = '/v1/chat/completions';
const request = Buffer.from(
  `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nconnection: keep-alive\r\ncontent-type: application/json\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
);
let done = 0;

/** `onAnswer` is called after the last byte of an answer, with the milliseconds since it was asked for. */
function rawConnection(onAnswer) {
  const socket = connect(Number(port), '127.0.0.1');
  socket.setNoDelay(true);
  let [missing, sent] = [-1, 0];
  socket.on('error', () => {});
  socket.on('data', (data) => {
    if (missing < 0) {
      const head = data.indexOf('\r\n\r\n');
      missing = head + 4 + Number(/content-length: (\d+)/i.exec(data.toString('latin1', 0, head))[1]);
    }
    missing -= data.length;
    if (missing > 0) return;
    missing = -1;
    onAnswer(performance.now() - sent);
  });
  return () => {
    sent = performance.now();
    socket.write(request);
  };
}

function raw() {
  for (let i = 0; i < Number(load); i++) {
    const send = rawConnection(() => {
      done++;
      send();
    });
    send();
  }
}

function dispatch() {
  for (let i = 0; i < Number(load); i++) {
    const client = new undici.Client(`http://127.0.0.1:${port}`, { headersTimeout: 0, bodyTimeout: 0 });
    const options = { path, method: 'POST', headers: ['content-type', 'application/json'], body };
    const handler = {
      onConnect() {},
      onHeaders: () => true,
      onData: () => true,
      onComplete() {
        done++;
        client.dispatch(options, handler);
      },
      onError() {},
    };
    client.dispatch(options, handler);
  }
}

/** The same over undici alone. */
function undiciConnection(onAnswer) {
  const client = new undici.Client(`http://127.0.0.1:${port}`, { headersTimeout: 0, bodyTimeout: 0 });
  const options = { path, method: 'POST', headers: ['content-type', 'application/json'], body };
  let sent = 0;
  const handler = {
    onConnect() {},
    onHeaders: () => true,
    onData: () => true,
    onComplete: () => onAnswer(performance.now() - sent),
    onError() {},
  };
  return () => {
    sent = performance.now();
    client.dispatch(options, handler);
  };
}

/** Rounds of a Poisson process, as skein bench has it, on warm connections. */
function paced(connection) {
  const idle = [];
  let latencies = [];
  const open = () => {
    const send = connection((ms) => {
      latencies.push(ms);
      idle.push(send);
    });
    return send;
  };
  const issue = () => (idle.pop() ?? open())();
  const count = Number(load) * Number(seconds);
  const round = () =>
    new Promise((resolve) => {
      latencies = [];
      let issued = 0;
      let due = performance.now();
      const timer = () => {
        for (; due <= performance.now() && issued < count; issued++) {
          due += (-1000 * Math.log(1 - Math.random())) / Number(load);
          issue();
        }
        if (issued < count) setTimeout(timer, Math.max(0, due - performance.now()));
        else if (latencies.length < count) setTimeout(timer, 10);
        else resolve();
      };
      timer();
    });
  createInterface({ input: process.stdin }).on('line', async () => {
    await round();
    latencies.sort((a, b) => a - b);
    const at = (share) => latencies[Math.ceil(share * count) - 1];
    console.log(JSON.stringify({ p50: at(0.5), p90: at(0.9), p99: at(0.99) }));
  });
  // This opens as many as skein bench opens ahead.
  for (let i = 0; i < 32; i++) open()();
}

if (kind === 'paced-raw') paced(rawConnection);
else if (kind === 'paced-undici') paced(undiciConnection);
else {
  if (kind === 'raw') raw();
  else dispatch();
  setTimeout(() => {
    const [cpu, count, from] = [process.cpuUsage(), done, performance.now()];
    setTimeout(() => {
      const { user, system } = process.cpuUsage(cpu);
      const elapsed = (performance.now() - from) / 1000;
      console.log(JSON.stringify({ rate: (done - count) / elapsed, cpu: (user + system) / 1e6 / elapsed }));
      process.exit();
    }, Number(seconds) * 1000);
  }, 1000);
}
