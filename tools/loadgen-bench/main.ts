// What the load generator itself can do, beside raw sockets, undici alone and other generators.
//
//   npm run build:ts && npx tsx loadgen-bench/main.ts [--parts rates,latency-20,latency-5,latency-1,precision,streams,others]
//     [--seconds 8] [--wrk wrk] [--autocannon autocannon] [--write]
//   npx tsx loadgen-bench/main.ts --parts others-python --python VENV/bin --tokenizer FOLDER [--vllm FOLDER]
//
// The servers are processes of their own; generator, its coordinator and the server share the machine's processors.
import { parseArgs } from 'node:util';
import { describeMachine, machineLine, sectionOf } from '../../base/machine.js';
import { writeSection } from '../document-section.js';
import { addedLatency, issuePrecision } from './latency.js';
import { openStreams } from './open-streams.js';
import { others, othersOfPython } from './others.js';
import { rates } from './rates.js';

const { values } = parseArgs({
  options: {
    parts: { type: 'string', default: 'rates,latency-20,latency-5,latency-1,precision,streams,others' },
    seconds: { type: 'string', default: '8' },
    wrk: { type: 'string' },
    autocannon: { type: 'string' },
    python: { type: 'string' },
    tokenizer: { type: 'string' },
    vllm: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
const PARTS: Record<string, () => Promise<string[]>> = {
  rates: () => rates(seconds),
  'latency-20': () => addedLatency(seconds, 20),
  'latency-5': () => addedLatency(seconds, 5),
  'latency-1': () => addedLatency(seconds, 1),
  precision: () => issuePrecision(seconds),
  streams: openStreams,
  others: () => others(seconds, values),
  'others-python': () => othersOfPython(seconds, values),
};

for (const name of values.parts.split(',')) {
  const part = PARTS[name];
  if (part === undefined) throw new Error(`There is no part ${name}: ${Object.keys(PARTS).join(', ')}.`);
  const lines = await part();
  const machine = describeMachine();
  const text = `${machineLine(machine)}; Node ${process.versions.node}; ${seconds} s each.\n\n${lines.join('\n')}`;
  // A section for each part: they are measured at different times where a machine is shared.
  if (values.write) writeSection('BENCHMARKS.md', sectionOf(`loadgen-${name}`, machine), text);
}
