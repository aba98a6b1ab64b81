import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readLabels } from '../../../models/repository/read-labels.js';
import { scanRepositories } from '../../../models/repository/repository-scan.js';
import { chooseVersions } from '../../../models/repository/versions.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'skein-scan-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, text = 'x'): void {
  const file = join(root, path);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text);
}

describe('a look at the folders', () => {
  it('finds models with their versions', async () => {
    for (const path of ['m/1/model.onnx', 'm/10/model.onnx', 'm/2/model.onnx', 'm/old/x', 'm/01/x', 'm/0/x'])
      write(path);
    write('.hidden/1/x');
    write('a-file');
    symlinkSync(join(root, 'm'), join(root, 'linked'));
    const models = await scanRepositories([root]);
    expect([...models.keys()].sort()).toEqual(['linked', 'm']);
    expect(models.get('m')).toMatchObject({
      directory: join(root, 'm'),
      versions: ['1', '2', '10'],
      problem: null,
    });
  });

  it('sees every change of a file', async () => {
    write('m/1/model.onnx');
    write('m/config.pbtxt');
    const stamp = async () => (await scanRepositories([root])).get('m')!.stamp;
    const first = await stamp();
    expect(await stamp()).toBe(first);
    utimesSync(join(root, 'm/1/model.onnx'), new Date(0), new Date(0));
    const second = await stamp();
    write('m/2/model.onnx');
    expect(new Set([first, second, await stamp()]).size).toBe(3);
  });

  it('holds a name that two repositories have against it alone', async () => {
    write('a/m/1/x');
    write('b/m/1/x');
    write('b/n/1/x');
    const models = await scanRepositories([join(root, 'a'), join(root, 'b')]);
    expect(models.get('m')!.problem).toBe(`it is in two repositories, ${root}/a/m and ${root}/b/m`);
    expect(models.get('n')!.problem).toBeNull();
  });

  it('knows a folder of a model that was named for a repository', async () => {
    write('squares/1/model.mjs');
    write('squares/config.yaml');
    write('squares/2/1/model.mjs');
    const models = await scanRepositories([join(root, 'squares')]);
    expect(models.get('1')!.problem).toBe(
      `${root}/squares seems to be the folder of a model, of which this is a version: the folder around it is expected as a model repository`,
    );
    expect(models.get('2')!.problem).toBeNull(); // a model may be called so
  });

  it('holds what cannot be one against a model alone', async () => {
    write(`deep/${'1/'.repeat(12)}x`);
    write('n/1/x');
    const models = await scanRepositories([root]);
    expect(models.get('deep')!.problem).toContain('more than 8 folders deep');
    expect(models.get('n')!.problem).toBeNull();
    await expect(scanRepositories([join(root, 'nowhere')])).rejects.toThrow('nowhere cannot be read');
  });
});

describe('versions', () => {
  const present = ['10', '2', '1'];
  it.each([
    [{ latest: { num_versions: 1 } }, ['10']],
    [{ latest: { num_versions: 2 } }, ['2', '10']],
    [{ all: {} }, ['1', '2', '10']],
    [{ specific: { versions: [2, 7] } }, ['2']],
  ] as const)('are chosen by the policy: %j', (policy, expected) => {
    expect(chooseVersions(policy as Parameters<typeof chooseVersions>[0], present)).toEqual(expected);
  });
});

it('labels are lines', () => {
  write('labels.txt', 'cat\r\ndog\n\nfish\n\n');
  expect(readLabels(root, 'labels.txt')).toEqual(['cat', 'dog', '', 'fish']);
  expect(() => readLabels(root, 'none.txt')).toThrow('none.txt cannot be read');
});
