import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readGyp } from '../../tools/prebuild/read-gyp.mjs';
import { zigFlags } from '../../tools/prebuild/zig-flags.mjs';
import { temporaryFolder } from '../support/fresh-folders.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = temporaryFolder('skein-gyp');

const GYP = `{
  # A comment, "with quotes"
  "variables": { "common": ["-O3", "-Wall"] },
  "target_defaults": { "cflags_cc": ["<@(common)"], "include_dirs": ["inc"] },
  "conditions": [["target_arch=='arm64'", { "targets": [
    { "target_name": "wide", "sources": ["wide.cpp"], "cflags_cc": ["-march=armv9-a"] }
  ] }]],
  "targets": [{
    "target_name": "all",
    "sources": ["<!@(node -p \\"'a.cpp\\\\nb.cpp'\\")"],
    "defines": ["A=1"],
    "conditions": [["OS=='mac'", { "defines": ["MAC"] }], ["OS=='linux'", { "libraries": ["-pthread"] }]]
  }]
}`;

function rootWith(gyp: string): string {
  const path = mkdtempSync(join(folder, 'root-'));
  writeFileSync(join(path, 'binding.gyp'), gyp);
  return path;
}

/** Sources that a unit consists of. */
function includedBy(file: string): string[] {
  if (!file.includes('/units/')) return [];
  const text = readFileSync(join(root, file), 'utf8');
  return [...text.matchAll(/^#include "(.*\.cpp)"$/gm)].map(([, name]) => `engine/executors/native/${name}`);
}

describe('binding.gyp, read for another platform', () => {
  it('has what its conditions, variables and commands say', () => {
    const path = rootWith(GYP);
    const all = { name: 'all', sources: ['a.cpp', 'b.cpp'], flags: ['-O3', '-Wall'], includes: ['inc'] };
    expect(readGyp(path, { os: 'linux', cpu: 'x64' })).toEqual([
      { ...all, defines: ['A=1'], libraries: ['-pthread'] },
    ]);
    expect(readGyp(path, { os: 'darwin', cpu: 'arm64' })).toEqual([
      { ...all, defines: ['A=1', 'MAC'], libraries: [] },
      {
        ...{ name: 'wide', sources: ['wide.cpp'], flags: ['-O3', '-Wall', '-march=armv9-a'] },
        ...{ defines: [], includes: ['inc'], libraries: [] },
      },
    ]);
  });

  it('is not guessed at where it is written in more than is known here', () => {
    const path = rootWith(GYP.replace("OS=='mac'", "OS!='win'"));
    expect(() => readGyp(path, { os: 'linux', cpu: 'x64' })).toThrow(
      `binding.gyp: the condition "OS!='win'" is none of NAME=='value'.`,
    );
  });

  it('has versions of ARM as zig names them, and no flags of GCC alone', () => {
    expect(zigFlags(['-march=armv8.2-a+dotprod+i8mm', '-mavx2', '-fno-schedule-insns', '-O3'])).toEqual([
      '-mcpu=generic+v8_2a+dotprod+i8mm',
      '-mavx2',
      '-O3',
    ]);
    const { flags } = readGyp(root, { os: 'darwin', cpu: 'arm64' }).find(
      ({ name }) => name === 'skein_neondot',
    )!;
    expect(flags).toContain('-fno-schedule-insns');
    expect(zigFlags(flags)).toContain('-mcpu=generic+v8_2a+dotprod');
  });

  it('names each source of the addon once, those of other instruction sets with flags of their own', () => {
    const native = join(root, 'engine/executors/native');
    const sources = readdirSync(native, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.cpp'),
    );
    const targets = readGyp(root, { os: 'linux', cpu: 'x64' });
    const files = targets.flatMap((target) => target.sources);
    expect(new Set(files).size).toBe(files.length);
    const named = [...files, ...files.flatMap(includedBy)];
    const common = targets.find(({ name }) => name === 'skein')!;
    const others = targets.filter(({ name }) => name !== 'skein');
    for (const { flags } of others) expect(flags.length).toBeGreaterThan(common.flags.length);
    // Those of ARM are for ARM.
    const isForX64 = (name: string) => !/(^|\/)neon\w*\.cpp$/.test(name);
    expect(named.sort()).toEqual(
      sources
        .filter(isForX64)
        .map((name) => `engine/executors/native/${name}`)
        .sort(),
    );
  });
});
