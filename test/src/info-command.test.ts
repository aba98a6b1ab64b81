import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ModelDescription } from '../../src/commands/model-description.js';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { FakeHub, filesOf } from '../support/fake-hub.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { madeModelPath } from '../support/made-models.js';
import { writeQuantizedModel } from '../support/quantized-models.js';
import { writeSeeingModel } from '../support/seeing-model.js';
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
  it('says nothing of a KV cache where no layer attends', async () => {
    const model = madeModelPath(folder, 'mamba2');
    const { kvCache, maxSeqLen, executor } = await describeBy(model);
    expect({ kvCache, maxSeqLen, executor }).toEqual({
      kvCache: null,
      maxSeqLen: 2 ** 20,
      executor: 'native',
    });
    const { stdout } = await runCli(['info', model]);
    expect(stdout).not.toMatch(/KV cache|NaN|Infinity/);
  });

  it('says what the states of a sequence take, and counts sequences by them too', async () => {
    const model = madeModelPath(folder, 'qwen3.5');
    const { states, kvCache } = await describeBy(model);
    expect(states!.bytesPerSequence).toBeGreaterThan(0);
    expect(states!.sequences).toBeGreaterThan(0);
    const perBlock = 32 * kvCache!.bytesPerToken;
    for (const { length, count } of kvCache!.sequences) {
      const byBlocks = Math.floor(Math.floor(kvCache!.bytes / perBlock) / Math.ceil(length / 32));
      expect(count).toBe(Math.min(states!.sequences, byBlocks));
    }
    const { stdout } = await runCli(['info', model]);
    expect(stdout).toMatch(/^states +\d.* a sequence of any length; \d+ sequences fit now$/m);
    expect((await describeBy(tinyModelPath('gqa'))).states).toBeNull();
  });

  it('says what a model sees pictures with, before and after it is built, or why it takes none', async () => {
    const model = writeSeeingModel(folder);
    const engine = join(folder, 'seeing-engine');
    expect((await runCli(['build', model, '-o', engine])).code).toBe(0);
    for (const one of [model, engine]) {
      const { pictures, leftAside } = await describeBy(one);
      expect(pictures).toEqual({ precision: 'bf16', weightBytes: expect.any(Number), keptBytes: 2 ** 28 });
      expect(leftAside).toEqual([]);
      const { stdout } = await runCli(['info', one]);
      expect(stdout).toMatch(
        /^pictures {2,}a tower in bf16, 5\d\.\d kB; up to 268 MB of its rows are kept$/m,
      );
    }
    rmSync(join(model, 'preprocessor_config.json'));
    const blind = await describeBy(model);
    expect(blind.leftAside).toEqual([{ part: 'model.visual', tensors: 57 }]);
    const { stdout } = await runCli(['info', model]);
    expect(stdout).toMatch(/^pictures {2,}none: .* there is no preprocessor_config\.json, so/m);
    expect((await describeBy(tinyModelPath('gqa'))).pictures).toBeNull();
  });

  it('says of a checkpoint what its engine directory then has', async () => {
    const model = tinyModelPath('gqa');
    const engine = join(folder, 'engine');
    expect((await runCli(['build', model, '-o', engine])).code).toBe(0);
    const before = await describeBy(model);
    const built = await describeBy(engine);
    const { path: _path, format, storedTypes, storedBytes, kvCache, ...same } = before;
    expect(built).toMatchObject(same);
    expect([format, built.format, built.storedTypes, built.storedBytes]).toEqual([
      'safetensors',
      'engine',
      null,
      null,
    ]);
    expect(storedTypes).toEqual({ F32: expect.any(Number) });
    expect(storedBytes).toBe(4 * before.parameters);
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
    const every = { layers: 2, hasShared: false };
    expect((await describeBy(tinyModelPath('mixtral'))).experts).toEqual({ count: 8, used: 2, ...every });
    const { stdout: glm } = await runCli(['info', madeModelPath(folder, 'glm4.5')]);
    expect(glm).toMatch(
      /^experts {2,}8 in 2 of 3 layers, of which a token goes to 3, and all tokens to one more$/m,
    );
    expect((await describeBy(tinyModelPath('qwen3'))).experts).toBeNull();
  });

  it('writes it for people without --json', async () => {
    const { code, stdout } = await runCli(['info', tinyModelPath('gguf')]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^model {2,}.*\narchitecture {2,}llama, which generates text; \d+(\.\d M)? parameters\n/,
    );
    expect(stdout).toMatch(/^stored as {2,}gguf: tensors .*\b5 Q8_0\b.*; [\d.]+ kB$/m);
    expect(stdout).toMatch(/^slow {2,}Matrices of Q8_0, Q4_0, Q4_1 run in bf16, /m);
    expect(stdout).toMatch(/^chat template {2,}no functions of its own, contents as text$/m);
    expect(stdout).toMatch(/^executor {2,}native\n/m);
    expect(stdout).toMatch(/^KV cache {2,}[\d.]+ kB a token in bf16$/m);
    expect(stdout).toMatch(/^ +\d+ sequences of \d+ tokens$/m);
  });

  it('says how weights are quantised, what becomes of them, and that nothing is known of sampling and chats', async () => {
    const quantized = writeQuantizedModel(join(folder, 'fp8'), 'fp8-blocks');
    const { stdout } = await runCli(['info', quantized]);
    expect(stdout).toMatch(/^architecture {2,}llama, which generates text; \d+ parameters$/m);
    expect(stdout).toMatch(/^stored as {2,}safetensors: tensors .*\b7 FP8\b/m);
    expect(stdout).toMatch(/^weights {2,}each matrix by how it is stored \(.*\b\d+ bf16\b.*\), [\d.]+ kB$/m);
    const rounded = writeQuantizedModel(join(folder, 'nvfp4'), 'ct-nvfp4');
    const { slow, storedTypes, weightForms } = await describeBy(rounded);
    expect({ slow, storedTypes, weightForms }).toMatchObject({
      slow: [],
      storedTypes: { FP4: 7 },
      weightForms: { int8: 4, bf16: 1 },
    });
    expect(stdout).toMatch(/^slow {2,}7 quantised matrices run in bf16, since no smaller form/m);
    expect(stdout).toMatch(/^chat template {2,}none: conversations are refused, prompts are completed$/m);
    expect(stdout).toMatch(/^sampling {2,}nothing recommended: temperature 1 where a request says nothing$/m);
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

describe('skein info of a model of the hub', () => {
  const ID = 'skein-tests/tiny-qwen3moe';
  const home = join(folder, 'home');
  let hub: FakeHub;
  let environment: Record<string, string>;
  beforeAll(async () => {
    hub = await FakeHub.start(ID, filesOf(tinyModelPath('qwen3moe')));
    environment = { HF_ENDPOINT: hub.endpoint, HF_HOME: home, HF_TOKEN: '', HF_HUB_OFFLINE: '' };
  });
  afterAll(() => hub.close());

  it('is that of its files, which stay where they are', async () => {
    const { code, stdout, stderr } = await runCli(['info', ID, '--json', '--revision', 'v1'], {
      environment,
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { model, path, remote, kvCache, ...same } = JSON.parse(stdout);
    const local = await describeBy(tinyModelPath('qwen3moe'));
    const { path: _path, remote: none, kvCache: room, ...wanted } = local;
    expect(same).toEqual(wanted);
    expect([model, path, none]).toEqual([ID, null, null]);
    expect(kvCache.bytesPerToken).toBe(room!.bytesPerToken);
    const bytes = [...hub.files.values()].reduce((sum, { content }) => sum + content.length, 0);
    expect(remote).toEqual({ commit: hub.commit, bytes, files: hub.files.size });
    expect(existsSync(home)).toBe(false);
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith('skein-described-'))).toEqual([]);
  });

  it('says for people where it is', async () => {
    const { stdout } = await runCli(['info', ID], { environment });
    expect(stdout).toMatch(
      new RegExp(
        `^model {2,}${ID} at ${hub.commit.slice(0, 12)} of the hub: 4 files of [\\d.]+ .B, not downloaded$`,
        'm',
      ),
    );
  });

  it('has the name of the model in place of a folder that is gone', async () => {
    const files = filesOf(tinyModelPath('gqa'));
    const config = {
      ...JSON.parse(files.get('config.json')!.content.toString()),
      architectures: ['BloomForCausalLM'],
    };
    files.set('config.json', { content: Buffer.from(JSON.stringify(config)), isLarge: false });
    const other = await FakeHub.start('skein-tests/bloom', files);
    const ended = await runCli(['info', 'skein-tests/bloom'], {
      environment: { ...environment, HF_ENDPOINT: other.endpoint },
    });
    await other.close();
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(
      /^skein: skein-tests\/bloom\/config\.json: architecture BloomForCausalLM is not supported: .*ALiBi/,
    );
  });

  it.each([
    [
      'a repository that there is not',
      ['a/b'],
      {},
      /^skein: There is no file or folder a\/b here, and 127\.0\.0\.1 has no model a\/b/,
    ],
    [
      'a revision that there is not',
      [ID, '--revision', 'v9'],
      {},
      /has no skein-tests\/tiny-qwen3moe, or no revision "v9"/,
    ],
    ['no network', [ID], { HF_HUB_OFFLINE: '1' }, /HF_HUB_OFFLINE forbids to ask for it\.$/m],
  ])('refuses %s', async (_what, args, changes, message) => {
    const ended = await runCli(['info', ...args], { environment: { ...environment, ...changes } });
    expect(ended).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(message) });
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
      chatTemplate: { tools: null, reasoning: null, readsParts: false, problem: null },
      kvCache: { dtype: 'bf16', bytesPerToken: 2 * 30 * 3 * 64 * 2 },
    });
  });
});
