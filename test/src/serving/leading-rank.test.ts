import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { leadingRank, openSecret, readSecret } from '../../../src/serving/leading-rank.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const folder = temporaryFolder('skein-leading-rank');
const file = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const ADDRESS = '10.0.0.1:7000';

describe('leadingRank', () => {
  it('is rank 0 of as many as the sizes make, with the secret of a file', () => {
    const ranksSecretFile = file('secret', '  sixteen letters!\n');
    const sizes = { tensorParallelSize: 2, pipelineParallelSize: 3 };
    expect(leadingRank({ ranksAddress: ADDRESS, ranksSecretFile, ...sizes })).toEqual({
      rank: 0,
      size: 6,
      address: ADDRESS,
      secret: 'sixteen letters!',
    });
    expect(leadingRank({ ranksAddress: '/run/ranks', pipelineParallelSize: 2 })).toEqual({
      rank: 0,
      size: 2,
      address: '/run/ranks',
    });
    expect(leadingRank(sizes)).toBeUndefined();
    const waits = { ranksAddress: '/run/ranks', pipelineParallelSize: 2, joinTimeoutSeconds: 7 };
    expect(leadingRank(waits)).toMatchObject({ joinTimeoutMs: 7000 });
  });

  it.each([
    [{ ranksSecretFile: 'f' }, 'ranksSecretFile needs ranksAddress, where the other ranks come to.'],
    [
      { ranksAddress: ADDRESS },
      'ranksAddress needs tensorParallelSize or pipelineParallelSize, which say how many ranks there are.',
    ],
    [
      { ranksAddress: ADDRESS, tensorParallelSize: 2 },
      `ranksSecretFile is missing: ranks that come to ${ADDRESS} must prove that they belong to the group.`,
    ],
  ])('refuses %o', (options, message) => {
    expect(() => leadingRank(options)).toThrow(message);
  });
});

describe('readSecret', () => {
  it('says why a file has none', () => {
    const short = file('short', 'fifteen letters\n');
    expect(() => readSecret('ranksSecretFile', short)).toThrow(
      `The file of ranksSecretFile, ${short}, has 15 characters; a secret has at least 16.`,
    );
    expect(() => readSecret('ranksSecretFile', join(folder, 'none'))).toThrow('there is no such file.');
  });
});

describe('openSecret', () => {
  it('warns where every user can read the file', () => {
    const path = file('open', 'sixteen letters!');
    chmodSync(path, 0o640);
    expect(openSecret(path)).toBeNull();
    chmodSync(path, 0o644);
    expect(openSecret(path)).toBe(
      `Every user of this machine can read the secret of the ranks in ${path}; chmod 600 keeps it secret.`,
    );
    expect(openSecret(join(folder, 'none'))).toBeNull();
  });
});
