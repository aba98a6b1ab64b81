import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { PortableExecutor } from '../../../../engine/executors/portable/portable-executor.js';
import { findGpu, type Gpu } from '../../../../engine/executors/tensorflow/gpu.js';
import {
  openTensorFlowRunner,
  type ProductType,
  productType,
} from '../../../../engine/executors/tensorflow/open-tensorflow-runner.js';
import { klDivergence, readGolden, type TinyPrompt } from '../../../../tools/support/goldens.js';
import { SequenceDriver } from '../../../../tools/support/sequence-driver.js';
import { mean } from '../../../../tools/support/statistics.js';
import {
  engineOptions,
  nativeEngine,
  TestEngines,
  tinyModelPath,
} from '../../../../tools/support/test-engine.js';
import { compareLogits } from '../../../reference/compare-logits.js';
import { describeWithTensorFlow } from '../../../support/test-tensorflow.js';

const engines = new TestEngines();
afterAll(() => engines.remove());

const gpu = (computeCapability: number): Gpu => ({ name: 'a GPU', computeCapability, freeBytes: 2 ** 33 });

describe('products of matrices', () => {
  it('are bf16 or f16 where a GPU multiplies it and the engine is not stored in f32', async () => {
    const bf16 = nativeEngine(await engines.get(tinyModelPath('gqa'), 'bf16'));
    const f32 = nativeEngine(await engines.get(tinyModelPath('gqa'), 'f32'));
    expect([6.1, 7.0, 7.5, 8.0, 9.0].map((capability) => productType(bf16, gpu(capability), {}))).toEqual([
      'f32',
      'f16',
      'f16',
      'bf16',
      'bf16',
    ]);
    expect(productType(bf16, null, {})).toBe('f32');
    expect(productType(f32, gpu(9), {})).toBe('f32');
    expect(productType(f32, null, { SKEIN_TENSORFLOW_PRODUCTS: 'bf16' })).toBe('bf16');
    expect(() => productType(f32, null, { SKEIN_TENSORFLOW_PRODUCTS: 'fp8' })).toThrow(
      'SKEIN_TENSORFLOW_PRODUCTS is "fp8"; it must be f32, bf16, f16 or absent.',
    );
  });
});

describe('what the driver says of a GPU', () => {
  it('is read of the first one that may be used', () => {
    const asked: string[] = [];
    const ask = (args: readonly string[]) => {
      asked.push(args.at(-1)!);
      return 'NVIDIA H100 80GB HBM3, 9.0, 80995\n';
    };
    const found = { name: 'NVIDIA H100 80GB HBM3', computeCapability: 9, freeBytes: 80995 * 2 ** 20 };
    expect(findGpu({}, ask)).toEqual(found);
    expect(findGpu({ CUDA_VISIBLE_DEVICES: '3,1' }, ask)).toEqual(found);
    expect(asked).toEqual(['--id=0', '--id=3']);
  });

  it('is nothing where there is no driver, or it says something else', () => {
    expect(findGpu({}, () => 'Failed to initialize NVML: Driver/library version mismatch')).toBeNull();
    expect(findGpu({}, () => 'Tesla, [N/A], [N/A]')).toBeNull();
    const missing = () => {
      throw new Error('spawnSync nvidia-smi ENOENT');
    };
    expect(findGpu({}, missing)).toBeNull();
  });
});

describeWithTensorFlow('products on TensorFlow', () => {
  afterEach(() => {
    delete process.env.SKEIN_TENSORFLOW_PRODUCTS;
  });

  it.each<[ProductType, number]>([
    ['f32', 1e-9],
    ['bf16', 3.2e-3],
    ['f16', 1e-4],
  ])('in %s stay close to transformers', async (type, most) => {
    process.env.SKEIN_TENSORFLOW_PRODUCTS = type;
    const engine = await engines.get(tinyModelPath('gqa'), 'f32');
    const options = engineOptions(engine, { tokensPerBlock: 16, kvDtype: 'f32' });
    const executor = await PortableExecutor.open(nativeEngine(engine), options, openTensorFlowRunner);
    expect(executor.instructionSet).toBe(type === 'f32' ? 'CPU' : `CPU, products in ${type}`);
    const divergences: number[] = [];
    const driver = new SequenceDriver(executor, engine.manifest.config);
    compareLogits(driver, readGolden<TinyPrompt>('tiny-gqa'), [256, 13], (reference, ours) =>
      divergences.push(klDivergence(reference, ours)),
    );
    const { weightBytes } = executor.memory();
    executor.close();
    const average = mean(divergences);
    expect(average).toBeLessThan(most);
    // Each type is really computed in: the coarser one is further away.
    expect(average).toBeGreaterThan({ f32: -1e-9, f16: 1e-9, bf16: 1e-5 }[type]);
    const f32Bytes = engine.plan.weights.reduce((sum, { rows, columns }) => sum + 4 * rows * columns, 0);
    expect(weightBytes / f32Bytes).toBeCloseTo(type === 'f32' ? 1 : 0.5, 1);
  });
});
