import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hasNvidiaGpu } from '../../../../engine/executors/tensorflow/nvidia-gpu.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';

const folder = temporaryFolder('skein-gpu');

function places(files: string[]) {
  const root = mkdtempSync(join(folder, 'machine-'));
  mkdirSync(join(root, 'dev'));
  for (const file of files) writeFileSync(join(root, file), '');
  return {
    platform: 'linux' as const,
    devices: join(root, 'dev'),
    windowsDriver: join(root, 'libcuda.so.1'),
  };
}

describe('hasNvidiaGpu', () => {
  it.each([
    ['a first GPU', ['dev/null', 'dev/nvidia0', 'dev/nvidiactl'], true],
    ['a container with the last of several', ['dev/nvidia11', 'dev/nvidiactl'], true],
    ['the driver of Windows', ['libcuda.so.1'], true],
    ['a driver without a GPU', ['dev/nvidiactl', 'dev/nvidia-uvm', 'dev/nvidia-modeset'], false],
    ['a machine without', ['dev/null'], false],
  ])('%s', (_, files, expected) => {
    expect(hasNvidiaGpu(places(files))).toBe(expected);
  });

  it('is false where nothing can be listed, and on other systems', () => {
    const here = places(['dev/nvidia0']);
    expect(hasNvidiaGpu({ ...here, devices: join(folder, 'missing') })).toBe(false);
    expect(hasNvidiaGpu({ ...here, platform: 'darwin' })).toBe(false);
  });
});
