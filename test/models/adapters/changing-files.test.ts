import { cpSync, readFileSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { openEngine } from '../../../engine/building/engine.js';
import { openAdapter } from '../../../models/adapters/open-adapter.js';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

it('an adapter whose files change while they are read is refused', async () => {
  const engines = new TestEngines();
  const engine = await engines.get(tinyModelPath('gqa'), 'f32');
  const { config } = openEngine(engine.directory).manifest;
  const folder = join(temporaryFolder('skein-changing'), 'adapter');
  cpSync(fileURLToPath(new URL('../../fixtures/lora-plain', import.meta.url)), folder, { recursive: true });
  const file = join(folder, 'adapter_model.safetensors');
  // The limit is asked for between the two looks at the files.
  let isTouched = false;
  const limits = {
    get maxRank() {
      if (isTouched) utimesSync(file, new Date(0), new Date(0));
      return 8;
    },
  };
  expect(openAdapter(folder, config, limits).maxRank).toBe(4);
  isTouched = true;
  expect(() => openAdapter(folder, config, limits)).toThrow(CheckpointError);
  utimesSync(file, new Date(), new Date());
  expect(() => openAdapter(folder, config, limits)).toThrow(
    'its files changed while they were read; load it again.',
  );
  expect(readFileSync(file).length).toBeGreaterThan(0);
  engines.remove();
});
