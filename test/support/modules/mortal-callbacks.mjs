// Callbacks inside the worker that end it once. All lives write to one file what they received; the requests
// of the first life are 1, 2 and 3, of which 1 has ended when it ends itself, and those of the second 2 and
// 4. The first life also brings 2 twice more, once in a form that cannot be read, and an id of 65 bits.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';

const file = process.env.SKEIN_TEST_SEEN;
const life = existsSync(file)
  ? readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line === 'life').length + 1
  : 1;
appendFileSync(file, 'life\n');

const waiting = (life === 1 ? [1n, 2n, 3n, 2n] : [2n, 4n]).map((requestId) => ({
  requestId,
  inputs: {
    input_ids: { shape: [1, 2], data: Int32Array.of(5, Number(requestId)) },
    request_output_len: { shape: [1, 1], data: Int32Array.of(life === 1 && requestId !== 1n ? 200 : 6) },
    streaming: { shape: [1], data: Uint8Array.of(1) },
  },
}));

if (life === 1) {
  const unreadable = {
    requestId: 2n,
    get inputs() {
      throw new Error('no inputs');
    },
  };
  waiting.push(unreadable, { ...waiting[0], requestId: 2n ** 64n + 2n });
}

export function getInferenceRequests(max) {
  return waiting.splice(0, max);
}

export function sendResponse(requestId, _outputs, final, error) {
  if (!final) return;
  appendFileSync(file, `${life} ${requestId} ${error || 'ended'}\n`);
  if (life === 1 && requestId === 1n) process.exit(4);
}
