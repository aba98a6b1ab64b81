import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { buildEngine } from '../../../engine/building/builder.js';
import { type Engine, EngineError, openEngine } from '../../../engine/building/engine.js';
import { cachedEngine } from '../../../engine/building/engine-cache.js';
import { checkWeights } from '../../../engine/building/weights-checksum.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const root = temporaryFolder('skein-sums');
const model = fileURLToPath(new URL('../../fixtures/tiny-bias', import.meta.url));

function flip({ weightsFile }: Engine, at: number): void {
  const bytes = readFileSync(weightsFile);
  bytes[at]! ^= 0x10;
  chmodSync(weightsFile, 0o644);
  writeFileSync(weightsFile, bytes);
}

describe('the checksums of weights.bin', () => {
  it('tell a flipped bit of every tensor, by its name', async () => {
    const engine = await buildEngine({ model, outputDirectory: join(root, 'engine'), precision: 'int8' });
    await checkWeights(engine);
    for (const tensor of engine.manifest.tensors) {
      expect(tensor.checksum).toEqual(expect.any(Number));
      flip(engine, tensor.offset + tensor.byteLength - 1);
      const refused = checkWeights(engine);
      await expect(refused).rejects.toThrow(EngineError);
      await expect(refused).rejects.toThrow(
        `${engine.weightsFile}: the bytes of ${tensor.name} are not those`,
      );
      flip(engine, tensor.offset + tensor.byteLength - 1);
    }
    await checkWeights(engine);
  });

  it('leave matrices to the packed file where there is one, but not what is looked up by rows', async () => {
    const engine = await buildEngine({ model, outputDirectory: join(root, 'packed'), precision: 'f32' });
    writeFileSync(join(engine.directory, 'packed-scalar-v3.bin'), '');
    const offsetOf = (name: string) => engine.manifest.tensors.find((one) => one.name === name)!.offset;
    const weightOf = (kind: string) =>
      engine.plan.ops.flatMap((op) => (op.op === kind && 'weight' in op ? [op.weight] : []))[0]!;
    flip(engine, offsetOf(weightOf('gatedLinear')));
    await checkWeights(engine);
    // Only the native executor reads the packed file.
    await expect(checkWeights(engine, 'wasm')).rejects.toThrow(EngineError);
    flip(engine, offsetOf(weightOf('embedding')));
    await expect(checkWeights(engine)).rejects.toThrow(`the bytes of ${weightOf('embedding')} are not`);
  });

  it('are not asked of an engine that has none', async () => {
    const engine = await buildEngine({ model, outputDirectory: join(root, 'old'), precision: 'f32' });
    const tensors = engine.manifest.tensors.map(({ checksum: _, ...tensor }) => tensor);
    writeFileSync(join(engine.directory, 'engine.json'), JSON.stringify({ ...engine.manifest, tensors }));
    flip(engine, 0);
    await checkWeights(openEngine(engine.directory));
  });

  it('have a damaged engine of the cache built anew, and say so', async () => {
    const options = { model, precision: 'f32', cacheDirectory: join(root, 'cache') };
    const engine = await cachedEngine(options);
    const whole = readFileSync(engine.weightsFile);
    flip(engine, 100);
    const said: string[] = [];
    const again = await cachedEngine({ ...options, onDamaged: (message) => said.push(message) });
    expect(said).toEqual([
      expect.stringMatching(/weights\.bin: the bytes of .* has changed them; it is built again\.$/),
    ]);
    expect(readFileSync(again.weightsFile).equals(whole)).toBe(true);
    await cachedEngine({ ...options, onDamaged: (message) => said.push(message) });
    expect(said).toHaveLength(1);
  });
});
