/**
 * Hours in minutes: random requests on a tiny model with a KV pool far too small, through every kind of
 * scheme, scheduler and cache, with cancels and time limits; every answer of a sample compared bit for bit
 * with the same request alone, and no block, thread, handle or memory left over. Exit code 1 if anything was
 * wrong.
 *
 *     npm run soak -- --seconds 60 --seed 7
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { MIXES } from './mixes.js';
import { mib, runSoak } from './soak.js';

const HELP = `Soaks the engine in random requests.

  --seconds N   of all mixes together (default 1200)
  --seed N      of the requests (default: the time of day, which is printed)
  --mix TEXT    only the mixes whose name holds this`;

const { values: flags } = parseArgs({
  options: {
    help: { type: 'boolean' },
    seconds: { type: 'string', default: '1200' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    mix: { type: 'string', default: '' },
  },
});

async function main(): Promise<number> {
  // The compiled package: the worker's thread runs JavaScript.
  const { buildEngine, GptManager } = (await import(
    new URL('../../dist/src/index.js', import.meta.url).href
  )) as typeof import('skein');
  const folder = mkdtempSync(join(tmpdir(), 'skein-soak-'));
  try {
    const model = fileURLToPath(new URL('../../test/fixtures/tiny-gqa', import.meta.url));
    const built = new Map<string, Promise<{ path: string; vocabSize: number }>>();
    const build = async (precision: string) => {
      const path = join(folder, precision);
      const { manifest } = await buildEngine({ model, outputDirectory: path, precision });
      return { path, vocabSize: manifest.config.vocabSize };
    };
    const mixes = MIXES.filter(({ name }) => name.includes(flags.mix));
    if (mixes.length === 0) throw new Error(`no mix has "${flags.mix}" in its name`);
    console.log(`seed ${flags.seed}, ${flags.seconds} s, ${mixes.length} mixes`);
    const { failures, resources } = await runSoak({
      Manager: GptManager,
      engineOf: (precision) => {
        const known = built.get(precision) ?? build(precision);
        built.set(precision, known);
        return known;
      },
      seconds: Number(flags.seconds),
      seed: Number(flags.seed),
      mixes,
      onLine: (line) => console.log(line),
    });
    const [first, last] = resources;
    const of = (name: 'threads' | 'files' | 'handles') => `${name} ${first[name]} to ${last[name]}`;
    console.log(
      `between engines: memory ${mib(first.rssBytes)} to ${mib(last.rssBytes)}, heap ${mib(first.heapBytes)} to ` +
        `${mib(last.heapBytes)}, ${of('threads')}, ${of('files')}, ${of('handles')}`,
    );
    for (const failure of failures) console.log(`FAILED ${failure}`);
    console.log(failures.length === 0 ? 'passed' : `${failures.length} failures`);
    return failures.length === 0 ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (flags.help) console.log(HELP);
else process.exitCode = await main();
