import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../support/test-engine.js';
import { packageWithoutAddon } from './support/package-without-addon.js';
import { runCli } from './support/skein-process.js';

const folder = mkdtempSync(join(tmpdir(), 'skein-without-addon-'));
let cli: string;
beforeAll(() => {
  cli = packageWithoutAddon(join(folder, 'package'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('a package without the native addon', () => {
  it.each(['bf16', 'int4'])('builds the same %s engine, byte for byte', async (weights) => {
    const [theirs, ours] = [join(folder, `${weights}-native`), join(folder, `${weights}-portable`)];
    for (const [output, options] of [
      [theirs, {}],
      [ours, { cli }],
    ] as const) {
      const args = ['build', tinyModelPath('qwen2-gguf'), '-o', output, '--weights', weights];
      expect(await runCli(args, options)).toMatchObject({ code: 0 });
    }
    expect(readdirSync(ours)).toEqual(readdirSync(theirs));
    for (const name of readdirSync(theirs))
      expect(readFileSync(join(ours, name)).equals(readFileSync(join(theirs, name))), name).toBe(true);
  });

  it('says what is missing and what to do in one sentence, before it looks at a model', async () => {
    const model = join(folder, 'model.gguf');
    writeFileSync(model, 'GGUF');
    const args = ['serve', '--port', '0', '--model', model, '--cache-dir', join(folder, 'cache')];
    const { code, stderr } = await runCli(args, { cli });
    expect(stderr).toMatch(/^skein: [^\n]*native addon[^\n]*C\+\+20 compiler[^\n]*npm[^\n]+\n$/);
    expect(code).toBe(1);
  });
});
