// Answers every POST with bytes made beforehand: a chat of `tokens` events, or a whole one of a token where it is 0. Each
// answer has another id than those before it, as servers' have, so that nothing learned of one stream fits the next.
// Knows as much of HTTP as that takes: a request is over when its body is.
import { createServer } from 'node:net';

const tokens = Number(process.argv[2]);
const ANSWERS = 256;
const usage = { prompt_tokens: 20, completion_tokens: Math.max(1, tokens), total_tokens: 20 + tokens };
const type = tokens === 0 ? 'application/json' : 'text/event-stream';

function answer(number) {
  const id = `chatcmpl-${number.toString(16).padStart(12, '0')}`;
  const chunk = (choice) =>
    `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created: 1700000000, model: 'm', choices: [choice] })}\n\n`;
  const body =
    tokens === 0
      ? JSON.stringify({ id, choices: [{ message: { content: 'a' }, finish_reason: 'stop' }], usage })
      : Array.from({ length: tokens }, (_, i) =>
          chunk({ index: 0, delta: { content: ` t${i}` }, finish_reason: null }),
        ).join('') +
        chunk({ index: 0, delta: {}, finish_reason: 'stop' }) +
        `data: ${JSON.stringify({ id, choices: [], usage })}\n\ndata: [DONE]\n\n`;
  return Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

const answers = Array.from({ length: ANSWERS }, (_, number) => answer(number));
let next = 0;

const server = createServer((socket) => {
  let seen = Buffer.alloc(0);
  socket.setNoDelay(true);
  socket.on('error', () => {});
  socket.on('data', (data) => {
    seen = seen.length === 0 ? data : Buffer.concat([seen, data]);
    for (;;) {
      const head = seen.indexOf('\r\n\r\n');
      if (head < 0) return;
      const length = Number(/content-length: (\d+)/i.exec(seen.toString('latin1', 0, head))?.[1] ?? 0);
      const end = head + 4 + length;
      if (seen.length < end) return;
      seen = seen.subarray(end);
      socket.write(answers[next++ % ANSWERS]);
    }
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
