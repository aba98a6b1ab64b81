import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/fresh-folders.js';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();

const folder = temporaryFolder('skein-setup-command');

describe('skein setup', () => {
  it('refuses what it does not know, with 2', async () => {
    const unknown = await runCli(['setup', 'cuda']);
    expect(unknown).toMatchObject({ code: 2, stdout: '' });
    expect(unknown.stderr).toBe(
      "skein: There is no setup of 'cuda'; there are: tensorflow, onnx, nats, tracing, zeromq.\n",
    );
    const both = await runCli(['setup', 'tensorflow', '--from', folder, '--download']);
    expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining('give one of them') });
    const other = await runCli(['setup', 'tensorflow', '--package', 'tfjs']);
    expect(other.stderr).toContain('there are: @tensorflow/tfjs-node-gpu, @tensorflow/tfjs-node.');
  });

  it('ends with 1 where there is no TensorFlow to link, and writes nothing', async () => {
    const environment = { SKEIN_CACHE_DIR: join(folder, 'cache') };
    const ended = await runCli(['setup', 'tensorflow', '--from', folder], { environment });
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(/^skein: .*: no libtensorflow is there .* is expected\.\n$/);
  });
});
