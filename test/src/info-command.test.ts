import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ModelDescription } from '../../src/commands/model-description.js';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { describeWithTestModel, testModelPath } from '../support/test-model.js';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();

const folder = temporaryFolder('skein-info');

/** Without the name that was given. */
async function describeBy(...args: string[]): Promise<ModelDescription> {
  const { code, stdout, stderr } = await runCli(['info', ...args, '--json']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const { model: _model, ...description } = JSON.parse(stdout);
  return description;
}

describe('skein info', () => {
  it('says of a checkpoint what its engine directory then has', async () => {
    const model = tinyModelPath('gqa');
    const engine = join(folder, 'engine');
    expect((await runCli(['build', model, '-o', engine])).code).toBe(0);
    const before = await describeBy(model);
    const built = await describeBy(engine);
    const { path: _path, format, storedTypes, hasChatTemplate, kvCache, ...same } = before;
    expect(built).toMatchObject(same);
    expect([format, built.format, built.storedTypes, built.hasChatTemplate]).toEqual([
      'safetensors',
      'engine',
      null,
      null,
    ]);
    expect(storedTypes).toEqual({ F32: expect.any(Number) });
    expect(typeof hasChatTemplate).toBe('boolean');
    expect(kvCache!.bytesPerToken).toBe(built.kvCache!.bytesPerToken);
  });

  it('says which tokens end an answer, also of an engine that was built with fewer', async () => {
    const model = tinyModelPath('gqa');
    const both = [
      { id: expect.any(Number), text: '<|im_end|>' },
      { id: expect.any(Number), text: '<|endoftext|>' },
    ];
    const engine = join(folder, 'older-engine');
    expect((await runCli(['build', model, '-o', engine])).code).toBe(0);
    const file = join(engine, 'engine.json');
    const manifest = JSON.parse(readFileSync(file, 'utf8'));
    const [first] = manifest.config.eosTokenIds;
    manifest.config.eosTokenIds = [first];
    writeFileSync(file, JSON.stringify(manifest));
    for (const one of [model, engine]) {
      const { endTokens } = await describeBy(one);
      expect(endTokens).toEqual(expect.arrayContaining(both));
      expect(endTokens).toHaveLength(both.length);
      expect(endTokens[0]!.id).toBe(first);
    }
    const { stdout } = await runCli(['info', engine]);
    expect(stdout).toMatch(/^ends {2,}<\|\w+\|> \(\d+\), <\|\w+\|> \(\d+\)$/m);
    expect((await describeBy(tinyModelPath('bert-mean'))).endTokens).toEqual([]);
  });

  it('counts sequences by whole blocks of what fits, as long as a sequence may be', async () => {
    const { kvCache, maxSeqLen } = await describeBy(tinyModelPath('gqa'), '--length', '33');
    expect(kvCache!.tokens % 32).toBe(0);
    expect(kvCache!.bytes).toBeGreaterThanOrEqual(kvCache!.tokens * kvCache!.bytesPerToken);
    const blocks = kvCache!.tokens / 32;
    for (const { length, count } of kvCache!.sequences) {
      expect(length).toBeLessThanOrEqual(maxSeqLen);
      expect(count).toBe(Math.floor(blocks / Math.ceil(length / 32)));
    }
    expect(kvCache!.sequences.map(({ length }) => length)).toContain(33);
  });

  it('counts with the KV cache that is asked for', async () => {
    const model = tinyModelPath('gqa');
    const [bf16, int8] = [await describeBy(model), await describeBy(model, '--kv-cache-dtype', 'int8')].map(
      ({ kvCache }) => kvCache!,
    );
    expect([bf16!.dtype, int8!.dtype]).toEqual(['bf16', 'int8']);
    expect(int8!.bytesPerToken).toBeLessThan(0.7 * bf16!.bytesPerToken);
    expect(int8!.tokens / bf16!.tokens).toBeGreaterThan(1.3);
  });

  it('says which layers have a window', async () => {
    const { stdout } = await runCli(['info', tinyModelPath('gemma3-gguf')]);
    expect(stdout).toMatch(/^architecture {2,}gemma3, which generates text/m);
    expect(stdout).toMatch(/^window {2,}5 of 6 layers attend to the last 20 tokens$/m);
  });

  it('says how many experts a token goes to', async () => {
    const { stdout } = await runCli(['info', tinyModelPath('qwen3moe-gguf')]);
    expect(stdout).toMatch(/^architecture {2,}qwen3moe, which generates text/m);
    expect(stdout).toMatch(/^experts {2,}8 in each layer, of which a token goes to 2$/m);
    expect((await describeBy(tinyModelPath('mixtral'))).experts).toEqual({ count: 8, used: 2 });
    expect((await describeBy(tinyModelPath('qwen3'))).experts).toBeNull();
  });

  it('writes it for people without --json', async () => {
    const { code, stdout } = await runCli(['info', tinyModelPath('gguf')]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^model {2,}.*\narchitecture {2,}llama, which generates text; \d+\.\d M parameters\n/,
    );
    expect(stdout).toMatch(/^executor {2,}native\n/m);
    expect(stdout).toMatch(/^KV cache {2,}[\d.]+ kB a token in bf16$/m);
    expect(stdout).toMatch(/^ +\d+ sequences of \d+ tokens$/m);
  });

  it.each([
    [
      'a length of none',
      ['--length', '0'],
      2,
      /--length is "0"; it must be a whole number of tokens of at least 1\./,
    ],
    [
      'a length beyond the model',
      ['--length', '99999999'],
      2,
      /--length is 99999999, and a sequence of this model has \d+ tokens at most/,
    ],
    [
      'an executor that there is not',
      ['--executor', 'gpu'],
      2,
      /--executor is "gpu"; it must be one of auto, native, tensorflow, wasm\./,
    ],
    [
      'a KV cache that there is not',
      ['--kv-cache-dtype', 'int4'],
      2,
      /--kv-cache-dtype is "int4"; it must be one of auto, f32, bf16, int8\./,
    ],
    [
      'a KV cache that the executor does not keep',
      ['--executor', 'wasm', '--kv-cache-dtype', 'int8'],
      1,
      /kvDtype is refused: the wasm executor has no use for it, since it keeps the KV cache as f32;/,
    ],
  ])('refuses %s', async (_what, args, code, message) => {
    const ended = await runCli(['info', tinyModelPath('gqa'), ...args]);
    expect(ended).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(message) });
  });

  it('says what is wrong with a model', async () => {
    const { code, stderr } = await runCli(['info', folder]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^skein: .*holds neither \*\.safetensors nor a \.gguf file\.$/m),
    ]);
  });
});

describeWithTestModel('skein info of SmolLM2', () => {
  it('is what its card says', async () => {
    expect(await describeBy(testModelPath!)).toMatchObject({
      architecture: 'llama',
      task: 'generate',
      format: 'gguf',
      parameters: 134_515_008,
      vocabSize: 49_152,
      numLayers: 30,
      maxSeqLen: 8192,
      weights: 'int4',
      outputWeights: 'int8',
      hasChatTemplate: true,
      kvCache: { dtype: 'bf16', bytesPerToken: 2 * 30 * 3 * 64 * 2 },
    });
  });
});
