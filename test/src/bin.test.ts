import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { cliPath, runCli } from './support/skein-process.js';

const manifest = JSON.parse(
  readFileSync(fileURLToPath(new URL('../../package.json', import.meta.url)), 'utf8'),
) as { engines: { node: string } };
const needed = manifest.engines.node.replace('>=', '');

/** Arguments that make Node.js claim to be another version. */
const asVersion = (version: string) => [
  '--import',
  `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'${version}'}})`,
];

describe('what skein starts', () => {
  it.each(['18.20.8', '20.18.3', '8.17.0'])('says on Node.js %s which one it needs', async (version) => {
    const { code, stdout, stderr } = await runCli(['--version'], { nodeOptions: asVersion(version) });
    expect(stderr).toMatch(/^skein: [^\n]+\n$/);
    expect(stderr).toContain(`This is Node.js ${version}, and Skein needs ${needed} or newer; install`);
    expect([code, stdout]).toEqual([1, '']);
  });

  it.each([`${needed}.0`, '22.0.0', '30.1.0'])('starts on Node.js %s', async (version) => {
    const { code, stdout } = await runCli(['--version'], { nodeOptions: asVersion(version) });
    expect(stdout).toMatch(/^skein \d/);
    expect(code).toBe(0);
  });

  it('is written in syntax of old', () => {
    const code = readFileSync(cliPath, 'utf8').replace(/^(#!|\s*\/\/).*$/gm, '');
    expect(code).not.toMatch(/\b(const|let|await|async|class)\b|=>|`|\?\.|\?\?|\bimport [^(]|\.\.\./);
  });
});
