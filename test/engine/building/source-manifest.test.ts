import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Engine, EngineError, loadableEngine, openEngine } from '../../../engine/building/engine.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { executorOptions } from '../../support/native-options.js';
import { SourceEngines } from '../../support/source-engines.js';

const engines = new SourceEngines();
afterAll(() => engines.remove());

describe('what engine.json says of a GGUF', () => {
  type Manifest = Engine['manifest'];
  const firstPieces = ({ tensors }: Manifest) => tensors.find(({ pieces }) => pieces !== undefined)!;

  it.each<[string, (manifest: Manifest) => void]>([
    ['no file', (manifest) => delete manifest.sourceFile],
    ['a file without a name', (manifest) => Object.assign(manifest.sourceFile!, { path: 7 })],
    ['a file without a time', (manifest) => Object.assign(manifest.sourceFile!, { modifiedMs: 'now' })],
    ['a file without a length', (manifest) => Object.assign(manifest.sourceFile!, { byteLength: -1 })],
    ['a part without a name', (manifest) => Object.assign(manifest.sourceFile!, { otherParts: [null] })],
    [
      'a part that lies elsewhere',
      (manifest) =>
        Object.assign(manifest.sourceFile!, {
          otherParts: [{ name: '../x.gguf', byteLength: 9, modifiedMs: 9 }],
        }),
    ],
    ['a place in a part that is not there', (manifest) => (firstPieces(manifest).pieces![0]!.part = 1)],
    [
      'a part that is no number',
      (manifest) => Object.assign(firstPieces(manifest).pieces![0]!, { part: '0' }),
    ],
    ['no list of pieces', (manifest) => Object.assign(firstPieces(manifest), { pieces: 'all' })],
    ['no pieces', (manifest) => Object.assign(firstPieces(manifest), { pieces: [] })],
    ['a piece of nothing', (manifest) => Object.assign(firstPieces(manifest), { pieces: [null] })],
    ['too few rows', ({ tensors }) => (firstPieces({ tensors } as Manifest).pieces![0]!.rows -= 2)],
    [
      'rows that are no number',
      (manifest) => Object.assign(firstPieces(manifest).pieces![0]!, { rows: '4' }),
    ],
    ['an unknown type', (manifest) => Object.assign(firstPieces(manifest).pieces![0]!, { type: 'Q9' })],
    ['a place before the file', (manifest) => (firstPieces(manifest).pieces![0]!.offset = -32)],
    ['a place behind the file', (manifest) => (firstPieces(manifest).pieces![0]!.offset = 1e9)],
    ['halves of heads', (manifest) => (firstPieces(manifest).pieces![0]!.interleavedHeads = 0.5)],
    ['a place in weights.bin too', (manifest) => (firstPieces(manifest).offset = 64)],
    [
      'a matrix that steps read by its rows',
      ({ tensors }) => {
        const embedding = tensors.find(({ name }) => name === 'embedding')!;
        embedding.pieces = [{ type: 'Q6_K', offset: 0, byteLength: embedding.byteLength, rows: 6 }];
      },
    ],
  ])('is refused where it tells %s', async (_, change) => {
    const { directory } = await engines.cached(engines.mixed);
    const file = join(directory, 'engine.json');
    const manifest = JSON.parse(readFileSync(file, 'utf8')) as Manifest;
    change(manifest);
    writeFileSync(file, JSON.stringify(manifest));
    expect(() => openEngine(directory)).toThrow(EngineError);
    expect(() => openEngine(directory)).toThrow(/are not those of the network/);
  });

  it('is refused by the executor as well, which is given tensors by programs', async () => {
    const engine = await engines.cached(engines.mixed);
    const open = (change: (tensors: ReturnType<typeof loadableEngine>['tensors']) => void) => () => {
      const loadable = structuredClone(loadableEngine(engine));
      change(loadable.tensors);
      return new NativeExecutor(loadable, executorOptions());
    };
    const index = engine.manifest.tensors.findIndex(({ pieces }) => pieces !== undefined);
    const noPieces = /is not what its pieces of the model's file make/;
    expect(open((tensors) => tensors[index]!.jobs!.pop())).toThrow(noPieces);
    expect(open((tensors) => tensors[index]!.jobs!.push(tensors[index]!.jobs![0]!))).toThrow(noPieces);
    expect(open((tensors) => (tensors[index]!.jobs![0]!.columns = 512))).toThrow(noPieces);
    expect(open((tensors) => (tensors[index]!.jobs![0]!.targetType = 'f32'))).toThrow(noPieces);
    expect(open((tensors) => (tensors[index]!.jobs![0]!.sourceByteLength -= 1))).toThrow(/takes \d+ bytes/);
    expect(
      open((tensors) => {
        const embedding = tensors.find(({ name }) => name === 'embedding')!;
        const [job] = tensors[index]!.jobs!;
        const { rows, columns, dtype } = embedding;
        embedding.jobs = [{ ...job!, rows, columns, targetType: dtype }];
      }),
    ).toThrow(/must hold tensor embedding, which a step reads by its rows/);
  });
});
