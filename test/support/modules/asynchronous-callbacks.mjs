// Callbacks inside the worker that are all asynchronous: they bring requests and stop one, and each is rejected once, after it
// has done its work. What they saw is written to the file named by the environment. `live` in the URL keeps the thread alive.
import { appendFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

const { searchParams } = new URL(import.meta.url);
if (searchParams.has('live')) setInterval(() => {}, 1000);
const waiting = [1n, 2n].map((requestId) => ({
  requestId,
  inputs: {
    input_ids: { shape: [1, 12], data: Int32Array.from({ length: 12 }, (_, i) => i + Number(requestId)) },
    request_output_len: { shape: [1, 1], data: Int32Array.of(requestId === 2n ? 200 : 6) },
    streaming: { shape: [1], data: Uint8Array.of(1) },
  },
}));
if (searchParams.has('terminate'))
  waiting.push({ requestId: 42n, inputs: {} }, { requestId: 3n, inputs: {} });
if (searchParams.has('hostile')) waiting.unshift(null);
const tell = (line) => appendFileSync(process.env.SKEIN_TEST_SEEN, `${line}\n`);
const failed = new Set();
let tokensOfTwo = 0;

async function failOnce(name) {
  if (failed.has(name)) return;
  failed.add(name);
  throw new Error(`${name} on purpose`);
}

export async function getInferenceRequests(max) {
  await wait(1);
  await failOnce('get');
  return waiting.splice(0, max);
}

export async function sendResponse(requestId, outputs, final, error) {
  if (requestId === 2n) tokensOfTwo++;
  if (final) tell(`${requestId} ${error || outputs.find(({ name }) => name === 'finish_reasons').data[0]}`);
  await failOnce('send');
}

export async function pollStopSignals() {
  await failOnce('poll');
  return new Set(tokensOfTwo > 5 ? [2n] : []);
}

export async function returnBatchManagerStats() {
  await failOnce('stats');
}

export async function onKvCacheEvents(events) {
  for (const { data } of events) tell(`event ${data.type}`);
  await failOnce('events');
}
