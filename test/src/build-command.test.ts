import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();

const folder = temporaryFolder('skein-build');

/** A copy of a tiny model whose file is cut to a share of its length. */
function truncated(variant: string, file: string, share: number): string {
  const copy = mkdtempSync(join(folder, 'model-'));
  cpSync(tinyModelPath(variant), copy, { recursive: true });
  const path = join(copy, file);
  truncateSync(path, Math.floor(readFileSync(path).length * share));
  return copy;
}

/** Everything in a folder, hidden entries too. */
const entries = (path: string) => (existsSync(path) ? readdirSync(path) : []);

/** The progress lines apart, the message is one sentence on one line. */
function lastLine(stderr: string): string {
  expect(stderr).not.toMatch(/\n\s+at /);
  return stderr.trimEnd().split('\n').at(-1)!;
}

describe('skein build', () => {
  it.each(['gqa', 'gguf'])('writes an engine directory (tiny-%s) and says so', async (variant) => {
    const output = join(folder, `engine-${variant}`);
    const args = ['build', tinyModelPath(variant), '-o', output, '--weights', 'f32', '--threads', '1'];
    const { code, stdout, stderr } = await runCli(args);
    expect([code, stdout]).toEqual([0, `${output}: f32 engine of ${tinyModelPath(variant)}\n`]);
    expect(stderr).toMatch(/^skein: reading the model\n[\s\S]*skein: writing the engine\n$/);
    const manifest = JSON.parse(readFileSync(join(output, 'engine.json'), 'utf8')) as { precision: string };
    expect(manifest.precision).toBe('f32');
    expect(entries(output)).toEqual(expect.arrayContaining(['engine.json', 'weights.bin', 'tokenizer.json']));
  });

  it.each([
    ['safetensors', 'gqa', 'model.safetensors', 0.9, /model\.safetensors.*model\.[a-z0-9_.]+/],
    ['a safetensors header', 'gqa', 'model.safetensors', 0.001, /model\.safetensors/],
    ['GGUF', 'gguf', 'tiny-llama.gguf', 0.9, /tiny-llama\.gguf.*[a-z0-9_.]+\.weight/],
  ])(
    'a truncated file (%s): one sentence with file and tensor, exit code 1, nothing written',
    async (_, variant, file, share, message) => {
      const model = truncated(variant, file, share);
      const outputs = join(model, 'outputs');
      mkdirSync(outputs);
      const cacheDir = join(model, 'cache');
      for (const args of [
        ['build', model, '-o', join(outputs, 'engine')],
        ['serve', '--port', '0', '--model', model, '--cache-dir', cacheDir],
      ]) {
        const { code, stderr, stdout } = await runCli(args);
        expect(lastLine(stderr)).toMatch(/^skein: .+[.?]$/);
        expect(lastLine(stderr)).toMatch(message);
        expect([code, stdout]).toEqual([1, '']);
      }
      expect([...entries(outputs), ...entries(cacheDir)]).toEqual([]);
    },
  );

  it('replaces an engine only where it is told to, and says what is there', async () => {
    const output = join(folder, 'twice');
    const build = (...args: string[]) => runCli(['build', tinyModelPath('gqa'), '-o', output, ...args]);
    expect((await build('--weights', 'f32')).code).toBe(0);
    const before = readFileSync(join(output, 'engine.json'), 'utf8');
    const refused = await build('--weights', 'bf16');
    expect(lastLine(refused.stderr)).toBe(
      `skein: ${output}: there is an engine of ${tinyModelPath('gqa')} in f32 already; --force replaces it.`,
    );
    expect([refused.code, refused.stdout]).toEqual([1, '']);
    expect(readFileSync(join(output, 'engine.json'), 'utf8')).toBe(before);
    const forced = await build('--weights', 'bf16', '--force', '--json');
    expect(JSON.parse(forced.stdout)).toEqual({
      path: output,
      model: tinyModelPath('gqa'),
      weights: 'bf16',
      outputWeights: 'bf16',
    });
    expect(forced.code).toBe(0);
    expect(JSON.parse(readFileSync(join(output, 'engine.json'), 'utf8'))).toMatchObject({
      precision: 'bf16',
    });
  });

  it('refuses to write over what is not an engine', async () => {
    const output = mkdtempSync(join(folder, 'taken-'));
    cpSync(join(tinyModelPath('gqa'), 'config.json'), join(output, 'mine.json'));
    const { code, stderr } = await runCli(['build', tinyModelPath('gqa'), '-o', output]);
    expect(lastLine(stderr)).toContain(output);
    expect([code, entries(output)]).toEqual([1, ['mine.json']]);
  });
});
