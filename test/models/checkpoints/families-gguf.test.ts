import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { planNetwork } from '../../../models/architectures/index.js';
import type { ModelConfig } from '../../../models/model-config.js';
import { ropeFrequencies } from '../../../network/rope.js';
import { TestEngines } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { MADE_GGUFS, MADE_MODELS, writeMadeGguf, writeMadeModel } from '../../support/made-models.js';

const folder = temporaryFolder('skein-families-gguf');
const engines = new TestEngines();
afterAll(() => engines.remove());

/** GGUF's numbers are f32. */
const asF32 = (value: unknown) =>
  JSON.parse(JSON.stringify(value, (_, item) => (typeof item === 'number' ? Math.fround(item) : item)));

describe.each(MADE_GGUFS)("$name as llama.cpp's converter writes it", (gguf) => {
  it('is the same network with the same weights, byte for byte', async () => {
    const made = MADE_MODELS.find(({ name }) => name === gguf.name)!;
    const fromHub = await engines.get(writeMadeModel(join(folder, made.name), made), 'f32');
    const tensors = new Map(made.tensors.map((tensor) => [tensor[0], tensor]));
    const file = writeMadeGguf(join(folder, `${made.name}.gguf`), tensors, gguf);
    const fromGguf = await engines.get(file, 'f32');
    const [hub, own] = [fromHub.manifest.config, fromGguf.manifest.config];
    // Files of a Mistral say llama.
    const planOf = (config: ModelConfig) => asF32({ ...planNetwork(config), architecture: null });
    expect(planOf(own)).toEqual(planOf(hub));
    expect(readFileSync(fromGguf.weightsFile).equals(readFileSync(fromHub.weightsFile))).toBe(true);
    expect([own.slidingWindow, own.maxPositions]).toEqual([hub.slidingWindow, hub.maxPositions]);
    // A wrapper says in safetensors alone that it is one.
    const ofText = (remarks: readonly string[] = []) => remarks.filter((text) => !text.includes(' runs as '));
    expect(ofText(fromGguf.manifest.remarks)).toEqual(ofText(fromHub.manifest.remarks));
    for (const length of [1, 200])
      expect(ropeFrequencies(own.rope, length)).toEqual(ropeFrequencies(hub.rope, length));
  });
});
