import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { encoderMemoryNeeds, loadEncoder } from '../../../engine/encoder/load-encoder.js';
import { TestEngines } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { madeEmbedder, writeMadeEmbedder } from '../../support/made-embedders.js';

const LONGEST = 32_768;

const folder = temporaryFolder('skein-long-texts');
const engines = new TestEngines();
afterAll(() => engines.remove());

async function engineOf(name: string): Promise<string> {
  const made = madeEmbedder(name);
  const config = { ...(made.files['config.json'] as object), max_position_embeddings: LONGEST };
  const path = writeMadeEmbedder(join(folder, name), made, { 'config.json': config });
  return (await engines.get(path, 'f32')).directory;
}

it.each(['modernbert', 'qwen3-embedding', 'deberta-v3'])(
  '%s takes no memory that grows with the square of a text',
  async (name) => {
    const directory = await engineOf(name);
    for (const executor of ['native', 'wasm'] as const) {
      const bytes = async (maxNumTokens: number) => {
        const params = { executor, threads: 1, maxNumTokens, maxNumSequences: 4 };
        return (await encoderMemoryNeeds(directory, params)).fixed.workspace;
      };
      const [short, long] = [await bytes(8192), await bytes(LONGEST)];
      expect(long / short, executor).toBeLessThan(4.2);
    }
  },
);

it.each([
  ['modernbert', 8192],
  ['e5-mistral', 8192],
])('%s takes texts of %i tokens by default, with the same bits beside others', async (name, most) => {
  const encoder = await loadEncoder(await engineOf(name), { threads: 2 });
  expect(encoder.limits).toMatchObject({ maxNumTokens: most, maxSeqLen: most });
  const sequence = (length: number) => ({
    tokenIds: Int32Array.from({ length }, (_, i) => 3 + ((i * 7919) % 100)),
    tokenTypes: null,
  });
  const [long, short] = [sequence(most - 1000), sequence(1000)];
  const alone = encoder.encode([long]).slice();
  expect(alone.every(Number.isFinite)).toBe(true);
  expect(encoder.encode([short, long]).slice(encoder.outputWidth)).toEqual(alone);
  encoder.close();
});
