import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WeightPrecision } from '../../../engine/directory/engine-directory.js';
import { countOf, listOf, SIDES_FLAGS } from '../../compare/flags.js';
import { ggufOf } from '../../compare/llama-cpp.js';
import { TestEngines } from '../../support/test-engine.js';
import { defineBench, forEachKind, sectionOfKernels } from '../bench.js';
import { MODEL_FLAG, modelOf, roundsFlag, THREADS_FLAG } from '../flags.js';
import { ggufAdapter } from './gguf-adapter.js';
import { KINDS, measureFormat, type Peers } from './measure-format.js';
import { randomAdapter } from './random-adapter.js';
import { peerTable, sharesTable, timesTable } from './tables.js';

const FLAGS = {
  ...MODEL_FLAG,
  ...THREADS_FLAG,
  weights: {
    argument: 'A,B',
    default: 'int4,int8,bf16',
    help: 'weights of the base (default int4,int8,bf16)',
  },
  ...roundsFlag(15),
  peers: {
    ...SIDES_FLAGS.peers,
    default: 'none',
    help: 'where llama.cpp lies or is built (default none: left out)',
  },
} as const;

/**
 * Speed of steps whose sequences have LoRA adapters of rank 16 compared with that of steps without, at the
 * executor alone: all sides of one format of the base model in turns, and llama.cpp with one adapter for
 * comparison.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/adapters.md',
  sections: forEachKind('adapters'),
  async run(flags, { progress, report }) {
    const [threads, rounds] = [countOf('threads', flags.threads), countOf('rounds', flags.rounds)];
    const model = modelOf(flags);
    const folder = new TestEngines();
    try {
      const found = [];
      let peers: Peers | null = null;
      for (const precision of listOf(flags.weights) as WeightPrecision[]) {
        const engine = await folder.get(model, precision);
        if (flags.peers !== 'none' && peers === null) {
          const adapter = join(engine.directory, 'adapter.gguf');
          writeFileSync(adapter, ggufAdapter(randomAdapter(engine.manifest.config, KINDS[0]!, 1)));
          peers = { directory: flags.peers, model: ggufOf(model), adapter };
        }
        const measured = await measureFormat(engine, { threads, rounds, peers, progress });
        progress(sharesTable([measured]));
        found.push(measured);
      }
      const isa = found[0]!.instructionSet;
      report({
        section: sectionOfKernels('adapters', isa),
        conditions: `kernels of ${isa}, ${threads} threads, medians of ${rounds} rounds in turns${found[0]!.peer === null ? '' : `; llama.cpp ${found[0]!.peer.version}`}`,
        lines: [
          'Speed compared with the same step in an engine without slots for adapters, in per cent:',
          '',
          sharesTable(found),
          '',
          'What a step takes longer, and the time in which plain reading by all threads passes the bytes of all A and B of that step once:',
          '',
          timesTable(found),
          ...(peers === null
            ? []
            : ['', 'Compared with llama.cpp with one adapter, all modules in f32:', '', peerTable(found)]),
        ],
      });
    } finally {
      folder.remove();
    }
  },
});
