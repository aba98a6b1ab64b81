import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { LoadPlan, ServedVersion } from '../../../../src/serving/repository/model-source.js';
import { uploadedModel } from '../../../../src/serving/repository/uploaded-model.js';

const content = new TextEncoder().encode('export const execute = () => [];');
const files = new Map([
  ['1/model.mjs', content],
  ['2/model.mjs', content],
]);

const version = (name: string): ServedVersion =>
  ({ model: { version: name }, served: null, close: async () => {}, isStuck: () => false }) as never;

const planOf = (versions: string[], start: LoadPlan['start'] = async (name) => version(name)): LoadPlan => ({
  identity: null,
  versions,
  start,
});

describe('files of a model that came with a request', () => {
  it('stay until the last version that is served of them has closed', async () => {
    const uploaded = await uploadedModel('m', files);
    expect(readFileSync(join(uploaded.model.directory, '2/model.mjs'))).toEqual(Buffer.from(content));
    const plan = await uploaded.plan(() => planOf(['1', '2']));
    const [first, second] = await Promise.all(plan.versions.map((name) => plan.start(name)));
    await first!.close();
    expect(existsSync(uploaded.model.directory)).toBe(true);
    await second!.close();
    expect(existsSync(uploaded.model.directory)).toBe(false);
  });

  it('do not wait for versions that the policy leaves out', async () => {
    const uploaded = await uploadedModel('m', files);
    const plan = await uploaded.plan(() => planOf(['2']));
    const started = await plan.start('2');
    await started.close();
    expect(existsSync(uploaded.model.directory)).toBe(false);
  });

  it('go where no load can be planned of them', async () => {
    const uploaded = await uploadedModel('m', files);
    const plan = uploaded.plan(() => {
      throw new Error('config.pbtxt:1: a field that nobody knows');
    });
    await expect(plan).rejects.toThrow('a field that nobody knows');
    expect(existsSync(uploaded.model.directory)).toBe(false);
  });

  it('are named in errors as the client named them, not where they lie', async () => {
    const uploaded = await uploadedModel('m', files);
    const { directory } = uploaded.model;
    const plan = await uploaded.plan(() =>
      planOf(['1'], async () => {
        throw new Error(`${directory}/1/model.mjs cannot be opened: ${directory}/1/model.mjs is none`);
      }),
    );
    await expect(plan.start('1')).rejects.toThrow(
      /^m\/1\/model\.mjs cannot be opened: m\/1\/model\.mjs is none$/,
    );
    const nested = new Map([
      ['1/model.mjs', content],
      ['1/model.mjs/inside', content],
    ]);
    await expect(uploadedModel('m', nested)).rejects.toThrow(
      /^the files of the request cannot be written: a file of this name is there$/,
    );
  });

  it('go where a version fails to start, and those that did start are closed', async () => {
    const uploaded = await uploadedModel('m', files);
    const plan = await uploaded.plan(() =>
      planOf(['1', '2'], async (name) => {
        if (name === '2') throw new Error('it exports no execute');
        return version(name);
      }),
    );
    const started = await plan.start('1');
    await expect(plan.start('2')).rejects.toThrow('it exports no execute');
    expect(existsSync(uploaded.model.directory)).toBe(true);
    await started.close();
    expect(existsSync(uploaded.model.directory)).toBe(false);
  });
});
