import { afterAll, beforeAll, expect, it } from 'vitest';
import { ExecutorLostError } from '../../../../engine/executors/executor.js';
import { DType, Graph } from '../../../../engine/executors/tensorflow/graph/graph.js';
import { Ops } from '../../../../engine/executors/tensorflow/graph/ops.js';
import { loadTensorFlow, type TensorFlow } from '../../../../engine/executors/tensorflow/load-tensorflow.js';
import { Session } from '../../../../engine/executors/tensorflow/session.js';
import { tinyModelPath } from '../../../../tools/support/test-engine.js';
import { type SkeinProcess, startServer } from '../../../src/support/skein-process.js';
import { type FaultyTensorFlow, makeFaultyTensorFlow } from '../../../support/faulty-tensorflow.js';
import { postJson } from '../../../support/post-json.js';
import { describeWithTensorFlow } from '../../../support/test-tensorflow.js';

const OUT_OF_MEMORY =
  'Session fail to run with error: 2 root error(s) found.\n  (0) RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[64,49152]';
const LOST =
  'Session fail to run with error: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered';

describeWithTensorFlow('a call of TensorFlow', () => {
  const graph = new Graph();
  const ops = new Ops(graph);
  const rows = graph.placeholder('rows', DType.int32, [2]);
  const attributes = { T: { type: DType.float }, index_type: { type: DType.int32 } };
  ops.identity(graph.node('Fill', { inputs: [rows, ops.float(3)], attributes }), DType.float, 'filled');
  const fed = (count: number) => ({ rows: { values: Int32Array.of(count, 1 << 20), shape: [2] } });

  // TensorFlow waits ten seconds for memory that others may free.
  it('that takes more memory than there is fails in a sentence, and the next one works', () => {
    const session = new Session(loadTensorFlow(), graph);
    expect(() => session.run(fed(1 << 24), ['filled'])).toThrow(
      /^TensorFlow failed: the device has no memory left for it \(.*\); lower the KV cache .*\.$/,
    );
    expect(session.run(fed(1), ['filled'])[0]!.subarray(0, 2)).toEqual(Float32Array.of(3, 3));
    session.close();
  });

  it.each([
    [LOST, true],
    ['UNAVAILABLE: GPU has fallen off the bus', true],
    ['INTERNAL: Failed to launch: CUDA_ERROR_OUT_OF_MEMORY: out of memory', false],
    ['INVALID_ARGUMENT: indices[3] = 99 is not in [0, 4)', false],
  ])('that fails with "%s" has lost its device: %s', (message, isLost) => {
    let calls = 0;
    const failing = {
      ...loadTensorFlow(),
      backend: () => ({
        loadSavedModelMetaGraph: () => 1,
        deleteSavedModel: () => {},
        runSavedModel: () => {
          calls++;
          throw new Error(message);
        },
      }),
    } as unknown as TensorFlow;
    const session = new Session(failing, graph);
    const errors = [1, 2].map(() => {
      try {
        session.run({}, ['filled']);
      } catch (error) {
        return error as Error;
      }
      throw new Error('It did not fail.');
    });
    for (const error of errors) {
      expect(error instanceof ExecutorLostError).toBe(isLost);
      expect(error.message).toMatch(/^TensorFlow failed.*\.$/);
    }
    // A device that is gone is not asked again.
    expect(calls).toBe(isLost ? 1 : 2);
  });
});

describeWithTensorFlow('a server on TensorFlow whose device fails', () => {
  let faulty: FaultyTensorFlow;
  let server: SkeinProcess;
  beforeAll(async () => {
    faulty = makeFaultyTensorFlow();
    const flags = ['--model', tinyModelPath('gqa'), '--weights', 'f32', '--executor', 'tensorflow'];
    const limits = ['--max-batch-tokens', '64', '--kv-cache-tokens', '2048'];
    server = await startServer([...flags, ...limits], { SKEIN_CACHE_DIR: faulty.cacheDirectory });
  });
  afterAll(async () => {
    expect((await server.stop()).code).toBe(0);
    faulty.remove();
  });

  const post = (body: object) =>
    postJson(`${server.url}/v1/chat/completions`, {
      messages: [{ role: 'user', content: 'ab' }],
      ignore_eos: true,
      ...body,
    });
  const health = async () => {
    const response = await fetch(`${server.url}/health`);
    return { status: response.status, text: await response.text() };
  };

  /** Events of a stream in whose midst the device fails. */
  async function failInStream(message: string): Promise<string[]> {
    const response = await post({ stream: true, max_tokens: 200 });
    expect(response.status).toBe(200);
    let text = '';
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
      if (text === '') faulty.fail(message);
      text += piece;
    }
    return text.split('\n').filter((line) => line.startsWith('data: '));
  }

  const errorOf = (events: string[]) => {
    const found = events.filter((event) => event.includes('"error"'));
    expect(found).toHaveLength(1);
    return (JSON.parse(found[0]!.slice('data: '.length)) as { error: { message: string } }).error.message;
  };

  it('fails the batch that took too much memory by an event of its stream, and goes on', async () => {
    const events = await failInStream(OUT_OF_MEMORY);
    expect(errorOf(events)).toMatch(/the device has no memory left for it .*OOM when allocating/);
    const after = await post({ max_tokens: 4 });
    expect(after.status).toBe(200);
    expect((await health()).text).toContain('"status":"ready","restarts":0');
  });

  it('that is lost gives way to a new one, with which everything in flight goes on', async () => {
    const beside = post({ max_tokens: 200 });
    const events = await failInStream(LOST);
    expect(events.filter((event) => event.includes('"error"'))).toEqual([]);
    expect(events.at(-1)).toContain('[DONE]');
    expect((await beside).status).toBe(200);
    await expect.poll(async () => (await health()).status).toBe(200);
    expect((await post({ max_tokens: 4 })).status).toBe(200);
  });
});
