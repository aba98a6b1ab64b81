import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readProblem, writeProblem } from '../../base/system-problem.js';

function thrown(action: () => void): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  throw new Error('Nothing was thrown.');
}
const ofCode = (code: string) => Object.assign(new Error(`${code}: told by the system`), { code });

describe('what the system says of a file, in words', () => {
  it('of what is read', () => {
    expect(readProblem(thrown(() => readFileSync('/nowhere')))).toBe('there is no such file.');
    expect(readProblem(thrown(() => readFileSync('/')))).toBe('it is a folder.');
    expect(readProblem(thrown(() => readdirSync('/dev/null')))).toBe('there is no such file.');
    expect(readProblem(ofCode('EACCES'))).toMatch(/^this user may not read it; .*\.$/);
  });

  it('of what is written', () => {
    expect(writeProblem(thrown(() => writeFileSync('/nowhere/file', '')))).toBe('its folder is not there.');
    expect(writeProblem(thrown(() => writeFileSync('/dev/full', 'x')))).toBe(
      'the disk is full; make room, or name a folder of another disk.',
    );
    for (const code of ['EACCES', 'EPERM', 'EROFS', 'EDQUOT', 'EIO', 'EISDIR', 'ENOTDIR', 'EEXIST'])
      expect(writeProblem(ofCode(code))).not.toContain(code);
  });

  it('of what has no words of ours, in the words of the system', () => {
    expect(writeProblem(ofCode('EXDEV'))).toBe('EXDEV: told by the system.');
  });
});
