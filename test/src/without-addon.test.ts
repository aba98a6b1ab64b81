import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { postJson } from '../support/post-json.js';
import { packageWithoutAddon } from './package-without-addon.js';
import { runCli, start } from './support/skein-process.js';

const folder = temporaryFolder('skein-without-addon');
/** The message about the missing addon, with the way to get it. */
const WHY =
  /The wasm executor runs in the place of a faster one: The native addon [^\n]*C\+\+20 compiler[^\n]*npm rebuild skein[^\n]*/;
let cli: string;
beforeAll(() => {
  cli = packageWithoutAddon(join(folder, 'package'));
});

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

  it('serves the demo model all the same, and says once why slowly and how it would be fast', async () => {
    const args = [cli, 'serve', '--port', '0', '--cache-dir', join(folder, 'cache')];
    const server = await start(args, {});
    const answer = await postJson(`${server.url}/v1/chat/completions`, {
      model: 'gosling',
      max_tokens: 12,
      temperature: 0,
      messages: [{ role: 'user', content: 'Tell me a story.' }],
    });
    expect(await answer.json()).toMatchObject({ usage: { completion_tokens: 12 } });
    const health = (await (await fetch(`${server.url}/health`)).json()) as { models: { gosling: object } };
    expect(health.models.gosling).toMatchObject({
      executor: 'wasm',
      executorFallback: expect.stringMatching(WHY),
    });
    const { stdout, stderr } = await server.stop();
    expect(stdout).toMatch(/^ {2}wasm executor on .*, 1 thread$/m);
    expect(stderr.match(/place of a faster one/g)).toHaveLength(1);
    expect(stderr).toMatch(new RegExp(`^skein: ${WHY.source}$`, 'm'));
  });

  it('says of a model what would compute, and what it would take', async () => {
    const { stdout } = await runCli(['info', tinyModelPath('gqa'), '--json'], { cli });
    expect(JSON.parse(stdout)).toMatchObject({
      executor: 'wasm',
      executorFallback: expect.stringMatching(WHY),
      threads: 1,
      kvCache: { dtype: 'f32' },
    });
    expect(JSON.parse(stdout).kvCache.bytes).toBeLessThan(2 ** 32);
    const named = await runCli(['info', tinyModelPath('gqa'), '--executor', 'wasm'], { cli });
    expect(named.stdout).toMatch(/^executor {2,}wasm$/m);
  });

  it('fails with one sentence where the addon is asked for, before it looks at a model', async () => {
    const model = join(folder, 'model.gguf');
    writeFileSync(model, 'GGUF');
    const options = ['--model', model, '--cache-dir', join(folder, 'cache'), '--executor', 'native'];
    const { code, stderr } = await runCli(['serve', '--port', '0', ...options], { cli });
    expect(stderr).toMatch(/^skein: [^\n]*native addon[^\n]*C\+\+20 compiler[^\n]*npm[^\n]+\n$/);
    expect(code).toBe(1);
  });
});
