/**
 * Random schemas, answered by a model and checked with ajv. Exit code 1 if an answer that came to its end was not valid.
 *
 *     npm run build:ts && npx tsx tools/guided-soak/main.ts --count 1000 [--model DIR_OR_GGUF] [--seed N] [--weights auto]
 */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runGuidedSoak } from './soak.js';

const { values: flags } = parseArgs({
  options: {
    count: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    model: {
      type: 'string',
      default: fileURLToPath(new URL('../../test/fixtures/tiny-gqa', import.meta.url)),
    },
    weights: { type: 'string', default: 'auto' },
    crowd: { type: 'string', default: '16' },
    'max-tokens': { type: 'string', default: '200' },
  },
});

// The compiled package: the worker's thread runs JavaScript.
const { Skein } = (await import(
  new URL('../../dist/src/index.js', import.meta.url).href
)) as typeof import('skein');
const skein = await Skein.load({ model: flags.model, weights: flags.weights as 'auto' });
const { complete, cut, refused, failures } = await runGuidedSoak({
  skein,
  count: Number(flags.count),
  seed: Number(flags.seed),
  crowd: Number(flags.crowd),
  maxTokens: Number(flags['max-tokens']),
});
await skein.close();
for (const failure of failures.slice(0, 20)) console.log(failure);
console.log(
  `${complete} answers came to their ends, ${failures.length} wrong; ${cut} were cut off, ${refused} schemas match no text`,
);
process.exitCode = failures.length === 0 && complete > 0 ? 0 : 1;
