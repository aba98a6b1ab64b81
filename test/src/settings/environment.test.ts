import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { OPTION_NAMES, variableName } from '../../../src/options/table.js';
import { unknownVariables } from '../../../src/settings/environment.js';
import { FLOORS } from '../../../tools/support/floors.js';
import { warmCli } from '../support/warm-cli.js';

const runCli = warmCli();

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** Names of variables that stand in the sources. */
function namesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(ts|mjs|yaml|yml|service|md)$/.test(name) && !name.includes('node_modules'))
    .flatMap((name) => {
      const text = readFileSync(join(root, folder, name), 'utf8');
      return Array.from(text.matchAll(/process\.env\.(SKEIN_\w+)|\$\{?(SKEIN_\w+)/g), ([, a, b]) => a ?? b!);
    });
}

describe('variables that begin with SKEIN_', () => {
  it('are named where nothing reads them', () => {
    expect(unknownVariables({ PATH: '/bin', SKEIN_PORT: '1', SKEIN_TEST_MODEL: 'x' })).toEqual([]);
    expect(unknownVariables({ SKEIN_QQQQQQQQQQ: '' })).toEqual([
      'The variable SKEIN_QQQQQQQQQQ is of no option and has no effect.',
    ]);
    expect(unknownVariables({ 'SKEIN_\nX': '' })[0]).not.toContain('\n');
  });

  it('are known where they are an option, or where the product, its tests, tools or deployments read them', () => {
    const options = OPTION_NAMES.map(variableName);
    const folders = [...FLOORS, 'test', 'deploy', 'examples'];
    const read = folders.flatMap(namesIn).filter((name) => !/^SKEIN_(X|PROT|QQQQQQQQQQ)$/.test(name));
    expect(read.length).toBeGreaterThan(10);
    const environment = Object.fromEntries([...options, ...read].map((name) => [name, '1']));
    expect(unknownVariables(environment)).toEqual([]);
  });

  it('of Kubernetes, for a service of that name, are not ours', () => {
    const names = ['SKEIN_SERVICE_HOST', 'SKEIN_SERVICE_PORT_HTTP', 'SKEIN_PORT_8000_TCP_ADDR'];
    expect(unknownVariables(Object.fromEntries(names.map((name) => [name, 'x'])))).toEqual([]);
  });

  it('are refused where they are near to one of ours, by every command', async () => {
    const { code, stdout, stderr } = await runCli(['completion', 'bash'], {
      environment: { SKEIN_PROT: '9000' },
    });
    expect([code, stdout, stderr]).toEqual([
      2,
      '',
      'skein: The variable SKEIN_PROT is of no option and has no effect. Did you mean SKEIN_PORT?\n',
    ]);
  });

  it('are named on stderr by every command, which goes on', async () => {
    const environment = { SKEIN_QQQQQQQQQQ: '9000' };
    const { code, stdout, stderr } = await runCli(['completion', 'bash'], { environment });
    expect(code).toBe(0);
    expect(stdout).not.toContain('SKEIN_QQQQQQQQQQ');
    expect(stderr).toBe('skein: The variable SKEIN_QQQQQQQQQQ is of no option and has no effect.\n');
  });
});
