import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Executor } from '../../../../engine/executors/executor.js';
import { PortableExecutor } from '../../../../engine/executors/portable/portable-executor.js';
import type { TensorFlowInstallation } from '../../../../engine/executors/tensorflow/installation.js';
import { loadTensorFlow } from '../../../../engine/executors/tensorflow/load-tensorflow.js';
import { openTensorFlowRunner } from '../../../../engine/executors/tensorflow/open-tensorflow-runner.js';
import {
  makeSamplingBatch,
  makeSamplingOutput,
  type SamplingRow,
} from '../../../../tools/support/sampling-rows.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { makeTinyNetwork } from '../../../../tools/support/tiny-network.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { describeWithTensorFlow } from '../../../support/test-tensorflow.js';

const OPTIONS = {
  threads: 2,
  maxNumTokens: 64,
  maxNumSequences: 8,
  maxLogitRows: 8,
  maxSeqLen: 64,
  numBlocks: 32,
  tokensPerBlock: 8,
  kvDtype: 'f32' as const,
};
describeWithTensorFlow('the TensorFlow executor', () => {
  const network = makeTinyNetwork({ numLayers: 1 });
  let executor: Executor;

  beforeAll(async () => {
    executor = await PortableExecutor.open(network, OPTIONS, openTensorFlowRunner);
  });
  afterAll(() => {
    executor.close();
    network.remove();
  });

  function batchOf(rows: number, seed = 1) {
    const sequences = Array.from({ length: rows }, (_, i) => ({
      tokens: [(7 * i + seed) % 131, (11 * i + 3 * seed) % 131],
      cached: 0,
      blocks: [i],
      logits: 'last' as const,
    }));
    return makeStepBatch(sequences, {
      tokensPerBlock: 8,
      inverseFrequencies: network.inverseFrequencies,
      newBlocks: Array.from({ length: rows }, (_, i) => i),
      window: null,
    });
  }

  it('draws on the device the tokens that the host draws of the same logits', () => {
    const settings: SamplingRow[] = [
      { temperature: 0 },
      { temperature: 1 },
      { temperature: 0.7, topK: 5 },
      { temperature: 1.3, topP: 0.8 },
      { temperature: 1, topK: 20, topP: 0.5 },
      { temperature: 2, topP: 0.1 },
      { temperature: 0.2, topK: 1 },
      { temperature: 1, topK: 131, topP: 0.99 },
    ];
    let [compared, equal] = [0, 0];
    for (let position = 0; position < 60; position++) {
      const rows = settings.map((row, i) => ({ ...row, seed: BigInt(1000 * i + 5), position }));
      const batch = batchOf(rows.length, position + 1);
      const [device, host] = [makeSamplingOutput(rows.length), makeSamplingOutput(rows.length)];
      executor.step(batch, makeSamplingBatch(rows), device);
      executor.forward(batch);
      executor.sample(makeSamplingBatch(rows), host);
      for (let i = 0; i < rows.length; i++) {
        compared++;
        if (device.tokens[i] === host.tokens[i]) equal++;
      }
      expect([...device.status]).toEqual([...host.status]);
    }
    expect(compared).toBe(480);
    // A number within an ulp of a boundary may fall on its other side.
    expect(compared - equal).toBeLessThanOrEqual(1);
  });

  it('says in a sentence that there is too little memory, and nothing is left of the attempt', async () => {
    const before = loadTensorFlow().backend().binding.getNumOfTensors();
    const tooMany = { ...OPTIONS, numBlocks: 200_000_000 };
    await expect(PortableExecutor.open(network, tooMany, openTensorFlowRunner)).rejects.toThrow(
      /The device has no memory left .* lower the KV cache/,
    );
    expect(loadTensorFlow().backend().binding.getNumOfTensors()).toBe(before);
    const again = await PortableExecutor.open(network, OPTIONS, openTensorFlowRunner);
    expect(again.forward(batchOf(1))).toHaveLength(131);
    again.close();
  });
});

describeWithTensorFlow('loading TensorFlow', () => {
  const folder = temporaryFolder('skein-load-tensorflow');

  /** A package whose loading ends with this message. */
  function failing(name: string, message: string): TensorFlowInstallation {
    const path = join(folder, name);
    mkdirSync(path);
    writeFileSync(join(path, 'package.json'), '{"main":"main.js"}');
    writeFileSync(join(path, 'main.js'), `throw new Error(${JSON.stringify(message)});`);
    return { package: '@tensorflow/tfjs-node-gpu', folder: path, from: 'setup' };
  }

  it('says what to run where it is not installed', () => {
    expect(() => loadTensorFlow(1, null)).toThrow('run "skein setup tensorflow"');
  });

  /** A binding that wants a library which the linker has seen and the loader does not find. */
  function bindingThatWants(library: string): TensorFlowInstallation {
    const path = join(folder, library);
    mkdirSync(path);
    const run = (...args: string[]) =>
      execFileSync('g++', ['-shared', '-fPIC', '-x', 'c++', ...args], { input: '' });
    run('-', '-Wl,--no-as-needed', `-Wl,-soname,${library}`, '-o', join(path, library));
    run('-', '-Wl,--no-as-needed', '-x', 'none', join(path, library), '-o', join(path, 'binding.node'));
    rmSync(join(path, library));
    writeFileSync(join(path, 'package.json'), '{"main":"binding.node"}');
    return { package: '@tensorflow/tfjs-node-gpu', folder: path, from: 'setup' };
  }

  it.each([
    [
      'libcudart.so.12',
      /the CUDA library libcudart\.so\.12 is missing or of another version; install the CUDA/,
    ],
    ['libcudnn.so.9', /the CUDA library libcudnn\.so\.9 is missing or of another version; install the CUDA/],
    [
      'libtensorflow_cc.so.99',
      /libtensorflow_cc\.so\.99 is not where it was when it was linked; run "skein setup/,
    ],
  ])('says that %s is missing in the loader’s words', (library, sentence) => {
    expect(() => loadTensorFlow(1, bindingThatWants(library))).toThrow(sentence);
  });

  it('says which library is missing, of CUDA that the version has to fit', () => {
    const moved = failing('moved', 'libtensorflow_cc.so.2: cannot open shared object file: No such file');
    expect(() => loadTensorFlow(1, moved)).toThrow(
      /libtensorflow_cc\.so\.2 is not where it was when it was linked; run "skein setup tensorflow --force"/,
    );
    const cuda = failing('cuda', 'libcudart.so.12: cannot open shared object file: No such file');
    expect(() => loadTensorFlow(1, cuda)).toThrow(
      /the CUDA library libcudart\.so\.12 is missing or of another version/,
    );
    const other = failing('other', 'The module was compiled against a different Node.js version');
    expect(() => loadTensorFlow(1, other)).toThrow(/compiled against a different Node\.js version.*--force/);
  });
});
