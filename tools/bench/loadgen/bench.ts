import { describeMachine } from '../../../base/machine.js';
import { listOf } from '../../compare/flags.js';
import { sectionOf } from '../../support/machine-words.js';
import { defineBench, forEachKind } from '../bench.js';
import { positiveOf, secondsFlag } from '../flags.js';
import { addedLatency, issuePrecision } from './latency.js';
import { openStreams } from './open-streams.js';
import { others, othersOfPython } from './others.js';
import { rates } from './rates.js';

const DEFAULT_PARTS = 'rates,latency-20,latency-5,latency-1,precision,streams,others';
const PARTS = [...DEFAULT_PARTS.split(','), 'others-python'];
const FLAGS = {
  parts: {
    argument: 'LIST',
    default: DEFAULT_PARTS,
    help: `what is measured, of ${PARTS.join(', ')} (default: all but the last)`,
  },
  ...secondsFlag(8),
  wrk: { argument: 'FILE', default: '', help: 'the program wrk, for the part others' },
  autocannon: { argument: 'FILE', default: '', help: 'the program autocannon, for the part others' },
  python: { argument: 'DIR', default: '', help: "folder of a Python's commands, for the part others-python" },
  tokenizer: { argument: 'DIR', default: '', help: 'a tokenizer, which the generators in Python want' },
  vllm: { argument: 'DIR', default: '', help: 'folder with vLLM and what its bench imports' },
} as const;

/**
 * Power of the load generator itself, compared with raw sockets, undici alone and other generators. The
 * servers are processes of their own; generator, its coordinator and the server share the machine's
 * processors.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/load-generator.md',
  sections: forEachKind(...PARTS.map((name) => `loadgen-${name}`)),
  async run(flags, { progress, report }) {
    const seconds = positiveOf('seconds', flags.seconds);
    const parts: Record<string, () => Promise<string[]>> = {
      rates: () => rates(seconds, progress),
      'latency-20': () => addedLatency(seconds, 20),
      'latency-5': () => addedLatency(seconds, 5),
      'latency-1': () => addedLatency(seconds, 1),
      precision: () => issuePrecision(seconds),
      streams: openStreams,
      others: () => others(seconds, flags, progress),
      'others-python': () => othersOfPython(seconds, flags, progress),
    };
    for (const name of listOf(flags.parts)) {
      const part = parts[name];
      if (part === undefined)
        throw new Error(`--parts: expected some of ${PARTS.join(', ')}, found '${name}'.`);
      // Each part has a section of its own: parts are measured at different times where a machine is shared.
      const lines = await part();
      const section = sectionOf(`loadgen-${name}`, describeMachine());
      report({ section, conditions: `Node ${process.versions.node}; ${seconds} s each`, lines });
    }
  },
});
