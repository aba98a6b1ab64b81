// Callbacks that run inside the engine's worker: they bring three requests, stop the third of them, throw once in each
// callback, and write what they saw to the file named by the environment.
import { writeFileSync } from 'node:fs';

const seen = { maxima: [], responses: [], stats: 0 };
const waiting = [1n, 2n, 3n].map((requestId) => ({
  requestId,
  inputs: {
    input_ids: { shape: [1, 2], data: Int32Array.of(5, Number(requestId)) },
    request_output_len: { shape: [1, 1], data: Int32Array.of(requestId === 3n ? 200 : 6) },
    streaming: { shape: [1], data: Uint8Array.of(1) },
  },
}));
let calls = 0;
let threwAtSend = false;
let threwAtStats = false;
let threwAtPoll = false;

export function getInferenceRequests(max) {
  calls += 1;
  if (calls === 1) throw new Error('not yet');
  seen.maxima.push(max);
  return waiting.splice(0, max);
}

export function sendResponse(requestId, outputs, final, error) {
  const tokens = outputs.find((output) => output.name === 'output_ids')?.data ?? [];
  const reason = outputs.find((output) => output.name === 'finish_reasons')?.data[0] ?? -1;
  seen.responses.push({ id: Number(requestId), tokens: [...tokens], final, error, reason });
  if (final && seen.responses.filter((response) => response.final).length === 3) {
    writeFileSync(process.env.SKEIN_TEST_SEEN, JSON.stringify(seen));
  }
  if (threwAtSend) return;
  threwAtSend = true;
  throw new Error('send');
}

export function pollStopSignals() {
  if (!threwAtPoll) {
    threwAtPoll = true;
    throw new Error('poll');
  }
  return new Set(seen.responses.length > 12 ? [3n] : []);
}

export function returnBatchManagerStats() {
  seen.stats += 1;
  if (threwAtStats) return;
  threwAtStats = true;
  throw new Error('stats');
}
