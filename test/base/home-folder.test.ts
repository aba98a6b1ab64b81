import { homedir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { homeFolder, NO_HOME } from '../../base/home-folder.js';

describe('the home folder', () => {
  it("is the user's, and one that nobody has where the system knows none", () => {
    expect(homeFolder()).toBe(homedir());
    const unknown = () => {
      throw new Error('uv_os_homedir returned ENOENT (no such file or directory)');
    };
    expect(homeFolder(unknown)).toBe(NO_HOME);
  });
});
