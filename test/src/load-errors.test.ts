import { EngineError, EngineFailure, GptManager, ParameterError, Skein, SkeinError } from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';

const engines = new TestEngines();
let engine: string;
beforeAll(async () => {
  engine = (await engines.get(tinyModelPath('gqa'), 'f32')).directory;
});
afterAll(() => engines.remove());

const failed = (loading: Promise<unknown>) =>
  loading.then(
    () => null,
    (error: unknown) => error,
  );

describe.each([false, true])('what an engine throws as it starts, with isolate: %s', (isolate) => {
  it('has its class, and the names of Skein.load', async () => {
    const error = await failed(Skein.load({ model: engine, isolate, maxContextTokens: 100_000 }));
    expect(error).toBeInstanceOf(ParameterError);
    expect(error).toMatchObject({ code: 'SKEIN_PARAMETER', field: 'maxContextTokens', kind: 'invalid' });
    expect((error as Error).message).toMatch(
      /^maxContextTokens is 100000; the engine was built for at most \d+\.$/,
    );
  });

  it('is an EngineFailure where it is of no class', async () => {
    const error = await failed(
      Skein.load({ model: engine, isolate, kvCacheTokens: 5, maxContextTokens: 100 }),
    );
    expect(error).toBeInstanceOf(EngineFailure);
    expect(error).toBeInstanceOf(SkeinError);
    expect(error).toMatchObject({ code: 'SKEIN_ENGINE_FAILED', cause: expect.any(Error) });
    expect((error as Error).message).toMatch(
      /kvCacheTokens = 5 allows \d+\. Raise kvCacheTokens or lower maxContextTokens\.$/,
    );
  });

  it('has its class for a GptManager too, in the words of the engine', async () => {
    const manager = new GptManager({
      enginePath: '/there/is/none',
      modelType: 'InflightFusedBatching',
      maxBeamWidth: 1,
      schedulerPolicy: 'GUARANTEED_NO_EVICT',
      optionalParams: { isolate },
      getInferenceRequests: () => [],
      sendResponse: () => {},
      onError: () => {},
    });
    const error = await failed(manager.ready);
    expect(error).toBeInstanceOf(EngineError);
    expect(error).toMatchObject({ code: 'SKEIN_ENGINE' });
    expect((error as Error).message).toContain('/there/is/none');
  });
});
