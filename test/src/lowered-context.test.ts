import { once } from 'node:events';
import { ContextLengthError, Skein } from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { startServer } from './support/skein-process.js';

const engines = new TestEngines();
let engine: string;
beforeAll(async () => {
  engine = (await engines.get(tinyModelPath('gqa'), 'f32')).directory;
});
afterAll(() => engines.remove());

const NOTE =
  /^The KV cache has room for 40 tokens, so that is the longest context; the model's own is \d+\.$/;

describe('a KV cache of fewer tokens than the context of the model', () => {
  it('lowers the context of a program, which a warning says', async () => {
    const warning = once(process, 'warning');
    await using skein = await Skein.load({ model: engine, kvCacheTokens: 40 });
    expect(skein.info).toMatchObject({ maxSeqLen: 40, loweredContext: expect.stringMatching(NOTE) });
    const [told] = await warning;
    expect(told).toMatchObject({ code: 'SKEIN_CONTEXT_LOWERED', message: skein.info.loweredContext });
    const { tokens } = await skein.complete({ promptTokens: [1, 2, 3], ignoreEos: true });
    expect(tokens).toHaveLength(37);
    const tooLong = skein.complete({ promptTokens: Array.from({ length: 40 }, () => 3) });
    await expect(tooLong).rejects.toThrow(ContextLengthError);
  });

  it.each([
    ['as long as the context', { kvCacheTokens: 4096 }],
    ['with a context that was asked for', { kvCacheTokens: 64, maxContextTokens: 50 }],
    ['with an attention window', { kvCacheTokens: 64, attentionWindowTokens: 32 }],
  ])('lowers nothing: %s', async (_, options) => {
    await using skein = await Skein.load({ model: engine, ...options });
    expect(skein.info.loweredContext).toBeNull();
  });

  it('lowers the context of a server, which says so as it starts', async () => {
    const server = await startServer(['--model', engine, '--kv-cache-tokens', '40']);
    const lines = server.output().stderr.split('\n');
    await server.stop();
    expect(lines).toContainEqual(expect.stringMatching(/^skein: The KV cache has room for 40 tokens/));
  });
});
