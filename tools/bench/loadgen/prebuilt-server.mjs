// Answers every POST with bytes made beforehand: a chat of `tokens` events, or a whole one of a token where
// it is 0, after `delay` milliseconds, to which it keeps by polling the clock. Each answer has another id
// than those before it, as servers' have, so that nothing learned of one stream fits the next. Knows as much
// of HTTP as that takes: a request is over when its body is. With `hold` N it sends the beginning of each
// stream at once and the rest of all when N of them are open, and reports how many those were.
//
//   node prebuilt-server.mjs TOKENS [DELAY [HOLD]]
import { createServer } from 'node:net';

const [tokens, delay = 0, hold = 0] = process.argv.slice(2).map(Number);
const ANSWERS = 256;
const POLL_MS = 2;
const usage = { prompt_tokens: 20, completion_tokens: Math.max(1, tokens), total_tokens: 20 + tokens };
const type = tokens === 0 ? 'application/json' : 'text/event-stream';

function answer(number) {
  const id = `chatcmpl-${number.toString(16).padStart(12, '0')}`;
  const common = { id, object: 'chat.completion.chunk', created: 1700000000, model: 'm' };
  const chunk = (choice) => `data: ${JSON.stringify({ ...common, choices: [choice] })}\n\n`;
  const body =
    tokens === 0
      ? JSON.stringify({ id, choices: [{ message: { content: 'a' }, finish_reason: 'stop' }], usage })
      : Array.from({ length: tokens }, (_, i) =>
          chunk({ index: 0, delta: { content: ` t${i}` }, finish_reason: null }),
        ).join('') +
        chunk({ index: 0, delta: {}, finish_reason: 'stop' }) +
        `data: ${JSON.stringify({ ...common, choices: [], usage })}\n\ndata: [DONE]\n\n`;
  return response(type, body);
}

function response(contentType, body) {
  const head = `HTTP/1.1 200 OK\r\ncontent-type: ${contentType}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`;
  return Buffer.from(head + body);
}

const models = response(
  'application/json',
  JSON.stringify({ object: 'list', data: [{ id: 'm', object: 'model' }] }),
);
const answers = Array.from({ length: ANSWERS }, (_, number) => answer(number));
let next = 0;
const held = [];
/** Answers in the order of their times. */
const late = [];

function reply(socket) {
  const bytes = answers[next++ % ANSWERS];
  if (hold > 0) {
    const begun = bytes.indexOf('\n\n') + 2;
    socket.write(bytes.subarray(0, begun));
    held.push(() => socket.write(bytes.subarray(begun)));
    if (held.length < hold) return;
    // A moment for an observer outside the process.
    console.log(`open: ${held.length}`);
    setTimeout(() => {
      for (const end of held.splice(0)) end();
    }, 2000);
  } else if (delay > 0) {
    if (late.push({ socket, bytes, atMs: performance.now() + delay }) === 1) waitForLate();
  } else socket.write(bytes);
}

/** Timers have a resolution of a millisecond, and would give answers that were asked for apart in one go. */
function waitForLate() {
  while (late.length > 0 && late[0].atMs <= performance.now()) {
    const { socket, bytes } = late.shift();
    socket.write(bytes);
  }
  if (late.length === 0) return;
  const ms = late[0].atMs - performance.now();
  if (ms > POLL_MS) setTimeout(waitForLate, ms - POLL_MS);
  else setImmediate(waitForLate);
}

const server = createServer((socket) => {
  let seen = Buffer.alloc(0);
  socket.setNoDelay(true);
  socket.on('error', () => {});
  socket.on('data', (data) => {
    seen = seen.length === 0 ? data : Buffer.concat([seen, data]);
    for (;;) {
      const head = seen.indexOf('\r\n\r\n');
      if (head < 0) return;
      const text = seen.toString('latin1', 0, head);
      const end = head + 4 + Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
      if (seen.length < end) return;
      seen = seen.subarray(end);
      if (text.startsWith('GET')) socket.write(models);
      else reply(socket);
    }
  });
});
server.listen({ port: 0, host: '127.0.0.1', backlog: 16_384 }, () => console.log(server.address().port));
