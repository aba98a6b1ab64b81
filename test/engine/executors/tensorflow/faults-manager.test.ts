import { afterAll, expect, it } from 'vitest';
import { makeRequest } from '../../../../tools/support/loop-harness.js';
import { TestEngines, tinyModelPath } from '../../../../tools/support/test-engine.js';
import { type FaultyTensorFlow, makeFaultyTensorFlow } from '../../../support/faulty-tensorflow.js';
import { ManagerClient } from '../../../support/manager-client.js';
import { describeWithTensorFlow } from '../../../support/test-tensorflow.js';

// The worker loads TensorFlow: nothing else in this process may.
describeWithTensorFlow('callbacks of an engine on TensorFlow', () => {
  const engines = new TestEngines();
  let faulty: FaultyTensorFlow | null = null;
  afterAll(() => {
    engines.remove();
    faulty?.remove();
  });

  it('hear of too little memory, of a lost device, and of every request exactly one end', async () => {
    faulty = makeFaultyTensorFlow();
    process.env.SKEIN_CACHE_DIR = faulty.cacheDirectory;
    const { directory } = await engines.get(tinyModelPath('gqa'), 'f32');
    const client = new ManagerClient({
      enginePath: directory,
      modelType: 'InflightFusedBatching',
      schedulerPolicy: 'GUARANTEED_NO_EVICT',
      maxBeamWidth: 1,
      optionalParams: {
        executor: 'tensorflow',
        threads: 2,
        workerRestart: { delayMs: 1, maxDelayMs: 20 },
        kvCacheConfig: { maxTokens: 1024 },
      },
    });
    const run = async (id: bigint, fault: string | null) => {
      if (fault !== null) faulty!.fail(fault);
      await client.submit(makeRequest(id, [3, 4, Number(id)], 6));
      return client.responses.get(id)!.at(-1)!.error;
    };
    await client.manager.ready;
    expect(await run(1n, null)).toBe('');
    expect(await run(2n, 'RESOURCE_EXHAUSTED: OOM when allocating tensor')).toMatch(
      /the device has no memory left for it .*; lower the KV cache/,
    );
    expect(await run(3n, null)).toBe('');
    expect(client.states.map(([state]) => state)).not.toContain('restarting');
    const lost = await Promise.all([
      run(4n, 'UNAVAILABLE: CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error'),
      run(5n, null),
    ]);
    expect(lost[0]).toMatch(/the GPU is lost, with all that was on it/);
    expect(await run(6n, null)).toBe('');
    expect(client.finals.toSorted()).toEqual([1n, 2n, 3n, 4n, 5n, 6n]);
    await client.manager.shutdown();
  });
});
