import { afterAll, expect, it } from 'vitest';
import { TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { ManagerClient } from '../support/manager-client.js';

const engines = new TestEngines();
afterAll(() => engines.remove());

const total = (memory: Record<string, unknown>) =>
  Object.values(memory).reduce((sum: number, bytes) => sum + (typeof bytes === 'number' ? bytes : 0), 0);

it('what a draft model takes is in the memory of the engine and in its statistics', async () => {
  const { directory: enginePath } = await engines.get(tinyModelPath('gqa'), 'f32');
  const { directory: draftEnginePath } = await engines.get(tinyModelPath('bias'), 'bf16');
  const usage: number[] = [];
  for (const drafts of [{}, { draftEnginePath }]) {
    const client = new ManagerClient({
      enginePath,
      modelType: 'InflightFusedBatching',
      maxBeamWidth: 1,
      schedulerPolicy: 'GUARANTEED_NO_EVICT',
      optionalParams: { threads: 1, maxNumSequences: 2, kvCacheConfig: { maxTokens: 256 }, ...drafts },
    });
    const { memory } = await client.manager.ready;
    const input_ids = { shape: [1, 2], data: Int32Array.of(5, 6) };
    const inputs = { input_ids, request_output_len: { shape: [1], data: Int32Array.of(3) } };
    await client.submit({ requestId: 1n, inputs });
    await client.manager.shutdown();
    const { draft, ...own } = memory;
    const reported = JSON.parse(client.stats[0]!)['Runtime CPU Memory Usage'];
    expect(reported).toBe(total(own) + total({ ...draft }));
    usage.push(reported);
    if (!('draftEnginePath' in drafts)) expect(draft).toBeNull();
    else
      for (const bytes of [draft!.weightBytes, draft!.kvCacheBytes, draft!.workspaceBytes])
        expect(bytes).toBeGreaterThan(0);
  }
  expect(usage[1]).toBeGreaterThan(usage[0]!);
});
