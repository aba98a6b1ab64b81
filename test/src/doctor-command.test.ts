import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { skeinVersion } from '../../base/package-info.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();
const folder = temporaryFolder('skein-doctor');
const PARTS = ['skein', 'processor', 'kernels', 'threads', 'memory', 'reading', 'models', 'hub', 'port'];

describe('skein doctor', () => {
  it('says what the machine has, and changes nothing', async () => {
    const environment = { HF_HUB_CACHE: join(folder, 'hub') };
    const { code, stdout, stderr } = await runCli(['doctor', '--offline', '--json'], { environment });
    expect(stderr).toBe('');
    expect(JSON.parse(stdout).map(({ part }: { part: string }) => part)).toStrictEqual(PARTS);
    expect(code).toBe(0);
    const lines = await runCli(['doctor', '--offline'], { environment });
    expect(lines.stdout.split('\n')[0]).toMatch(new RegExp(`^skein +ok +${skeinVersion()} on Node `));
  });

  it('ends with 1 where something is wrong', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    const environment = { HF_HUB_CACHE: join(file, 'hub') };
    const { code, stdout } = await runCli(['doctor', '--offline'], { environment });
    expect(stdout).toContain(`models     wrong  ${join(file, 'hub')} cannot be made`);
    expect(code).toBe(1);
  });

  it('refuses a port that is none', async () => {
    const { code, stderr } = await runCli(['doctor', '--port', '70000']);
    expect(stderr).toContain('--port is "70000"; a number from 1 to 65535 is expected.');
    expect(code).toBe(2);
  });
});

describe('skein version', () => {
  it('prints versions and kernels', async () => {
    const { stdout } = await runCli(['version', '--json']);
    const found = JSON.parse(stdout);
    expect(found).toMatchObject({ skein: skeinVersion(), node: process.versions.node });
    expect((await runCli(['version'])).stdout).toBe(
      `skein ${found.skein}, Node ${found.node}, ${found.platform}, kernels: ${found.kernels}\n`,
    );
  });
});
