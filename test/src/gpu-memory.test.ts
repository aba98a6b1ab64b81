import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { recordPath, type SetupRecord, setupFolder } from '../../engine/executors/tensorflow/installation.js';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { freshFolders } from '../support/fresh-folders.js';
import { describeWithTensorFlow, testTensorFlow } from '../support/test-tensorflow.js';
import { runCli, startServer, testCacheDir } from './support/skein-process.js';

const freshFolder = freshFolders('skein-gpu');
const MODEL = ['--model', tinyModelPath('gqa'), '--weights', 'f32', '--executor', 'tensorflow'];

/** A machine of which the driver and the setup say that it has a GPU with so much memory; what computes has none. */
function machineWith(freeMebibytes: number): Record<string, string> {
  const programs = freshFolder();
  const driver = join(programs, 'nvidia-smi');
  writeFileSync(driver, `#!/bin/sh\necho 'NVIDIA H100 80GB HBM3, 9.0, ${freeMebibytes}'\n`);
  chmodSync(driver, 0o755);
  const cache = freshFolder();
  const setup = setupFolder(cache);
  mkdirSync(setup, { recursive: true });
  const installation = testTensorFlow!;
  symlinkSync(dirname(dirname(installation.folder)), join(setup, 'node_modules'));
  const record: SetupRecord = {
    package: installation.package,
    packageVersion: '4.22.0',
    tensorflow: '2.21.0',
    library: null,
    gpu: true,
  };
  writeFileSync(recordPath(setup), JSON.stringify(record));
  return { PATH: `${programs}:${process.env.PATH}`, SKEIN_CACHE_DIR: cache };
}

async function blocksWith(freeMebibytes: number): Promise<number> {
  const flags = [...MODEL, '--memory-fraction', '0.01'];
  const server = await startServer(flags, machineWith(freeMebibytes));
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  expect((await server.stop()).code).toBe(0);
  return Number(/^vllm:cache_config_info\{.*num_gpu_blocks="(\d+)"/m.exec(metrics)?.[1]);
}

describeWithTensorFlow('the KV cache on a GPU', () => {
  it('is sized by what the driver says is free there, not by the system’s memory', async () => {
    const [few, more] = [await blocksWith(400), await blocksWith(500)];
    expect(few).toBeGreaterThan(50);
    // Keys and values in f32 of a block of 32 tokens: 2 layers, one head of 16.
    const blockBytes = 2 * 2 * 16 * 4 * 32;
    const bytes = (more - few) * blockBytes;
    expect(Math.abs(bytes - 0.01 * 100 * 2 ** 20)).toBeLessThanOrEqual(blockBytes);
  });

  it('is refused where there is too little, by the name of the GPU', async () => {
    const { code, stderr } = await runCli(['serve', '--port', '0', '--cache-dir', testCacheDir, ...MODEL], {
      environment: machineWith(20),
    });
    expect(code).toBe(1);
    expect(stderr).toContain('the driver of NVIDIA H100 80GB HBM3');
  });
});
