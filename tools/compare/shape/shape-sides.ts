import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs';
import type { ServingPeer } from '../peer.js';
import { spawnSkein } from '../run-server.js';
import type { Shape } from '../shapes.js';
import type { Candidate, Values } from '../side.js';
import { dist, measureEngine, skeinDigest } from '../skein.js';
import { measureStarts } from './starts.js';

/** A column of a comparison of larger models: rates of a shape, or the starts of the servers. */
export type ShapeColumn = Shape | 'starts';

export interface ShapeModel {
  /** The GGUF; ends in `.TYPE.gguf`. */
  file: string;
  type: string;
  threads: number;
}

/** Tokens of a sequence of the servers whose starts are measured. */
const SEQUENCE_TOKENS = 1024;

/** A peer that reads the file as it is. */
export function peerCandidate(
  engine: string,
  openPeer: () => ServingPeer,
  { file, type, threads }: ShapeModel,
): Candidate<ShapeColumn> {
  return {
    engine,
    format: type,
    open: () => {
      const peer = openPeer();
      const start = (port: number) => peer.serve(file, type, port, threads, 1, SEQUENCE_TOKENS);
      return {
        name: `${engine} ${type}`,
        engine,
        format: type,
        bytes: statSync(file).size,
        version: peer.version(),
        measure: (column): Values | Promise<Values> =>
          column === 'starts'
            ? measureStarts({ file, start, kept: null })
            : peer.measure(file, type, column, threads),
      };
    },
  };
}

/**
 * Skein with what `--weights auto` makes of the file. The engines of a run lie in `cache`: the measurement of starts begins with
 * an empty one and leaves what it has built to the others.
 */
export function skeinCandidate(cache: string, { file, type, threads }: ShapeModel): Candidate<ShapeColumn> {
  const start = (port: number) => {
    const args = ['--model', file, '--weights', 'auto', '--cache-dir', cache, '--port', `${port}`];
    args.push('--threads', `${threads}`, '--max-active-requests', '1');
    return spawnSkein([...args, '--max-context-tokens', `${SEQUENCE_TOKENS}`]);
  };
  return {
    engine: 'skein',
    format: type,
    open: () => ({
      name: `skein ${type}`,
      engine: 'skein',
      format: type,
      bytes: statSync(file).size,
      version: skeinDigest(),
      measure: async (column) => {
        if (column !== 'starts') return measureEngine(await cachedFolder(file, cache), column, { threads });
        if (existsSync(cache)) rmSync(cache, { recursive: true });
        mkdirSync(cache, { recursive: true });
        return measureStarts({ file, start, kept: cache });
      },
    }),
  };
}

async function cachedFolder(model: string, cacheDirectory: string): Promise<string> {
  const { cachedEngine } = (await dist(
    'engine/building/engine-cache.js',
  )) as typeof import('../../../engine/building/engine-cache.js');
  const { directory } = await cachedEngine({ model, precision: 'auto', cacheDirectory });
  return directory;
}
