// Callbacks that never bring anything and write down how often they were asked.
import { writeFileSync } from 'node:fs';

let calls = 0;

export function getInferenceRequests() {
  calls += 1;
  writeFileSync(process.env.SKEIN_TEST_SEEN, String(calls));
  return [];
}

export function sendResponse() {}

export function pollStopSignals() {
  return calls === 1 ? 7 : new Set(); // once no set at all
}
